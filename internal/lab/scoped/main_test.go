package scoped

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/weir-net/weir/internal/lab"
	"github.com/weir-net/weir/internal/testutil"
)

// victim is the argument with which this binary runs the lab of the next that is to be killed.
const victim = "victim"

func TestMain(m *testing.M) {
	if code, ours := lab.TrafficMain(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); ours {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == victim {
		fmt.Fprintln(os.Stderr, runVictim(os.Args[2]))
		os.Exit(1)
	}
	testutil.Leaks(m)
}

func runVictim(name string) error {
	c, err := New("test")
	if err != nil {
		return err
	}
	_, err = lab.Run(context.Background(), name, lab.Options{Controller: stalled{c}})
	return err
}

// A stalled controller prints its scope as soon as a policy is in force, and
// goes no further.
type stalled struct{ *Controller }

func (s stalled) Apply(ctx context.Context, netns string, text []byte) error {
	if err := s.Controller.Apply(ctx, netns, text); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(s.agent.Scope); err != nil {
		return err
	}
	select {}
}
