package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

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
	Verb   string // "apply" or "reset"
	Policy string
	KillAt int // the how-many-eth place, from 1; 0: never
}

func TestMain(m *testing.M) {
	if text := os.Getenv(victimEnv); text != "" {
		os.Exit(runVictim(text))
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
	if v.Verb == "reset" {
		return a.Reset(context.Background())
	}
	p, err := policy.Parse("test.yaml", []byte(v.Policy))
	if err != nil {
		return err
	}
	_, err = a.Apply(context.Background(), p, []byte(v.Policy))
	return err
}
