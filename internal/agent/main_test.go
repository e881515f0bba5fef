package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/testutil"
)

// victimEnv makes the test binary a victim: it does one change and kills itself
// at the place that it was told.
const victimEnv = "WEIR_TEST_VICTIM"

// A victim is a change that ends in SIGKILL.
type victim struct {
	Scope  state.Scope
	Verb   string // "apply", "confirm" (an apply until then), "set" (10Mbit to a cgroup), "rollback", "reset", "steer" or "unsteer"
	Cgroup string // of "set"
	Policy string
	Link   string // of "steer" (to CPU 0) and "unsteer"
	KillAt int    // the how-many-eth place, from 1; 0: never
}

func TestMain(m *testing.M) {
	if text := os.Getenv(victimEnv); text != "" {
		os.Exit(runVictim(text))
	}
	if text := os.Getenv(stufferEnv); text != "" {
		os.Exit(runStuffer(text))
	}
	if address := os.Getenv(clientsEnv); address != "" {
		os.Exit(runClients(address))
	}
	if len(os.Args) > 1 && os.Args[1] == traffic.WorkerArgument {
		os.Exit(traffic.WorkerMain(os.Stdin, os.Stdout, os.Stderr))
	}
	testutil.Leaks(m)
}

func runVictim(text string) int {
	var v victim
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	places := 0
	a := &Agent{Scope: v.Scope, Version: "test", Before: func(int, string) error {
		if places++; places == v.KillAt {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		}
		return nil
	}}
	if err := v.run(a); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (v victim) run(a *Agent) error {
	ctx := context.Background()
	switch v.Verb {
	case "reset":
		return a.Reset(ctx)
	case "rollback":
		return a.Rollback(ctx, "the test says so")
	case "steer":
		_, err := a.Steer(ctx, v.Link, plan.SteerAsk{Queue: plan.NoQueue})
		return err
	case "unsteer":
		_, err := a.Unsteer(ctx, v.Link)
		return err
	case "set":
		cgroup, err := policy.ParseCgroup(v.Cgroup)
		if err != nil {
			return err
		}
		return a.SetGroup(ctx, policy.Selector{Kind: policy.KindCgroup, Cgroup: cgroup}, most(10e6))
	}
	p, err := policy.Parse("test.yaml", []byte(v.Policy))
	if err != nil {
		return err
	}
	if v.Verb == "confirm" {
		a.Detach = guardHere(a)
		_, err = a.ApplyUntilConfirmed(ctx, p, []byte(v.Policy), time.Hour)
		return err
	}
	_, err = a.Apply(ctx, p, []byte(v.Policy))
	return err
}

// guardHere is a Detach whose guard lives and dies with this process.
func guardHere(a *Agent) func(...string) (int, error) {
	return func(args ...string) (int, error) {
		if len(args) != 2 || args[0] != Guardian {
			return 0, fmt.Errorf("detach %q: no guard", args)
		}
		deadline, err := time.Parse(time.RFC3339Nano, args[1])
		if err == nil {
			go a.Guard(context.Background(), deadline)
		}
		return os.Getpid(), err
	}
}
