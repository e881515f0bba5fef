package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

func TestCode(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{errors.New("any"), 1},
		{&usageError{"typo", ""}, 64},
		{fmt.Errorf("wrapped: %w", &usageError{"typo", ""}), 64},
		{policy.Errors{{Message: "bad"}}, 65},
		{&policyError{errors: policy.Errors{{Message: "bad"}}}, 65},
		{told(5), 5},
		{fmt.Errorf("wrapped: %w", coded{errors.New("x"), 4, false}), 4},
	} {
		if got := code(tt.err); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.err, got, tt.want)
		}
	}
}

// A signal needs no words, but what is left half done does.
func TestEndBySignal(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted{15})
	for said, err := range map[string]error{
		"":                    fmt.Errorf("apply: %w", ctx.Err()),
		"error: half of it\n": leftBehind{errors.New("half of it")},
	} {
		var b buffers
		c := &cli{env: env{stderr: &b.stderr}, color: "never"}
		if code := c.end(ctx, err); code != 143 || b.stderr.String() != said {
			t.Errorf("%v: exit code %d, %q", err, code, &b.stderr)
		}
	}
}

func TestEveryExitCodeIsDocumented(t *testing.T) {
	for _, code := range []int{exitDone, exitFailed, exitDiffers, exitRolledBack, exitPrivilege, exitBroken, exitUsage, exitPolicy, 130, 143} {
		if !strings.Contains(exitCodes, fmt.Sprintf("\n  %3d  ", code)) {
			t.Errorf("%d is not documented", code)
		}
	}
}
