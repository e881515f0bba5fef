package main

import "testing"

// A policy is never taken for a plan, even one that is written in JSON.
func TestAsSavedPlan(t *testing.T) {
	for text, want := range map[string]bool{
		twoWorkloads:                      false,
		`{"version": 1, "workloads": {}}`: false,
		`{"kind": "other"}`:               false,
		``:                                false,
		`{"kind": "weir plan", "file": "p.yaml"}`:  true,
		`{"kind": "weir plan", "made": "no time"}`: false,
	} {
		if got := asSavedPlan([]byte(text)) != nil; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
