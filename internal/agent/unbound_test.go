package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// Others make cgroups in which a limit does not hold: who hands a policy in is
// refused. For what is in force status tells of it, and all else goes on.
func TestUnboundLater(t *testing.T) {
	testutil.Needs(t, "raw_tracepoint", "BPF atomics", "BPF tail calls")
	b := newBench(t)
	const (
		top   = "  top: {match: [{cgroup: CGROUP}], priority: 1, egress: {max: 10Mbit}}\n"
		units = "  u1: {match: [{unit: weir-one.slice}], priority: 1}\n  u2: {match: [{unit: weir-two.slice}], priority: 1}\n" +
			"  u3: {match: [{unit: weir-three.slice}], priority: 1}\n  u4: {match: [{unit: weir-four.slice}], priority: 1}\n"
	)
	text := strings.Replace(b.policyText(top+units), "CGROUP", b.cgroup, 1)
	b.apply(t, text)
	is := func(verdict plan.Verdict, warning string) {
		t.Helper()
		s, err := b.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if s.OK != (verdict != plan.Broken) || len(s.Differences) > 0 || strings.Contains(strings.Join(s.Warnings, "\n"), "limit") != (warning != "") ||
			!strings.Contains(strings.Join(s.Warnings, "\n"), warning) {
			t.Fatalf("%s: differences %v, warnings %q", s.Verdict, s.Differences, s.Warnings)
		}
		for _, j := range s.Promises {
			if j.Promise == plan.PromiseEgress && j.Verdict != verdict || j.Promise == plan.PromisePriority && j.Verdict != plan.Kept {
				t.Fatalf("%s of %q is %s: %s", j.Promise, j.Workload, j.Verdict, j.Evidence)
			}
		}
	}
	grow := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(b.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	is(plan.Kept, "")
	grow("weir-one.slice/weir-two.slice/weir-three.slice")
	is(plan.Unprovable, "does not hold there for what has a tag")
	grow("weir-one.slice/weir-two.slice/weir-three.slice/weir-four.slice")
	const there = `weir-four.slice: the limit of workload "top" does not hold there: limits nest 3 deep, and 4 other workloads claim nearer cgroups; match fewer`
	is(plan.Broken, there)

	p, err := policy.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	_, planned := b.Plan(context.Background(), p)
	_, steps := b.Steps(context.Background(), p)
	_, applied := b.tryApply(text)
	for what, err := range map[string]error{"plan": planned, "steps": steps, "apply": applied} {
		if misfits := (policy.Errors{}); !errors.As(err, &misfits) || len(misfits) != 1 || misfits[0].Line != 9 {
			t.Errorf("%s: %v", what, err)
		}
	}
	is(plan.Broken, there)

	// Another contract, and an apply that fails and goes back to what is in force.
	other := policy.Selector{Kind: policy.KindCgroup, Cgroup: policy.Cgroup{Pattern: b.cgroup + "/other"}}
	if err := b.SetGroup(context.Background(), other, priority(3)); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no room for it")
	b.Before = func(_ int, step string) error {
		if step == "make generation the one that counts" {
			b.Before = nil
			return failed
		}
		return nil
	}
	if _, err := b.tryApply(b.policyText(units)); !errors.Is(err, failed) || !errors.Is(err, ErrRolledBack) || strings.Contains(err.Error(), "does not fit") {
		t.Fatal(err)
	}
	is(plan.Broken, there)
	if err := b.ClearGroup(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	b.apply(t, b.policyText(units))
	is(plan.Kept, "")
}
