package main

import (
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

func TestEveryExitCodeIsDocumented(t *testing.T) {
	for _, code := range []int{exitDone, exitFailed, exitDiffers, exitRolledBack, exitPrivilege, exitBroken, exitUsage, exitPolicy, 130, 143} {
		if !strings.Contains(exitCodes, fmt.Sprintf("\n  %3d  ", code)) {
			t.Errorf("%d is not documented", code)
		}
	}
}
