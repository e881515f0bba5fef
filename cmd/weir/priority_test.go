package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

func TestPriorityFlag(t *testing.T) {
	for text, want := range map[string]policy.Priority{
		"0":                       {},
		"15":                      {Default: 15},
		"eth0=6":                  {Default: policy.Unset, PerLink: map[string]policy.Level{"eth0": 6}},
		"eth0=6,eth1=3,default=4": {Default: 4, PerLink: map[string]policy.Level{"eth0": 6, "eth1": 3}},
		"default=4":               {Default: 4, PerLink: map[string]policy.Level{}},
	} {
		var f priorityFlag
		if err := f.Set(text); err != nil || !f.given {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, f.value); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{"", "16", "-1", "+3", "03", "high", "eth0=", "eth0=16", "eth0", "=3", "eth0=3,", "eth0=3,eth0=3", "default=1,default=2", "eth0=3,4", "a/b=3"} {
		var f priorityFlag
		if err := f.Set(text); err == nil {
			t.Errorf("%q is taken as %v", text, f.value)
		}
	}
}
