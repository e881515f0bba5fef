package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// An error is printed once, with what to do about it, however it is wrapped.
func TestPrintError(t *testing.T) {
	for want, err := range map[string]error{
		"error: no\n":                          errors.New("no"),
		"error: no\n  help: yes\n":             &usageError{"no", "yes"},
		"error: a: no\n  help: b\n  help: c\n": &hinted{fmt.Errorf("a: %w", errors.New("no")), []string{"b", "c"}},
		"error: set: a change waits to be confirmed\n  help: weir confirm keeps it, weir rollback takes it back\n": fmt.Errorf("set: %w", agent.ErrPending),
		"error: no such process\n  help: ps -e shows what runs\n":                                                  coded{workload.ErrGone, 1, false},
		"the applied policy:3:4: error: gone\n1 error\n":                                                           fmt.Errorf("set: %w", policy.Errors{{Span: policy.Span{Line: 3, Column: 4}, Message: "gone"}}),
		"": told(5),
	} {
		var b buffers
		c := &cli{env: env{stderr: &b.stderr}, color: "never"}
		c.printError(err)
		if got := b.stderr.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What was taken back is told before what could have been the cause of it.
func TestHintsOfWrappedErrors(t *testing.T) {
	err := fmt.Errorf("%w (%w)", agent.ErrNotProved, agent.ErrRolledBack)
	if got := hints(err); len(got) != 1 || !strings.Contains(got[0], "weir status") {
		t.Errorf("got %v", got)
	}
	for _, known := range knownErrors() {
		if len(known.help) == 0 || len(hints(fmt.Errorf("x: %w", known.err))) == 0 {
			t.Errorf("%v has no help", known.err)
		}
	}
	if got := hints(fmt.Errorf("x: %w", state.ErrBusy)); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}
