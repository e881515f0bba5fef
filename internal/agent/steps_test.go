package agent

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// What Steps says is what Apply does, in the same order, and saying it changes
// nothing.
func TestStepsAreThoseOfApply(t *testing.T) {
	b := newBench(t)
	before := b.dump(t)
	for _, text := range []string{
		b.policyText("  gold:\n    match: [{port: 4000}]\n    priority: 15\n"),
		b.policyText("  gold:\n    match: [{port: 4000}]\n    priority: 3\n"),
	} {
		p, err := policy.Parse("test.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		steps, err := b.Steps(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if before != "" && b.dump(t) != before {
			t.Error("saying the steps has changed something")
		}
		before = ""
		var said, done []string
		for _, s := range steps {
			said = append(said, s.Text)
		}
		b.Progress = func(text string) { done = append(done, text) }
		b.apply(t, text)
		if diff := cmp.Diff(done, said); diff != "" {
			t.Errorf("done and said: %s", diff)
		}
		if steps, err := b.Steps(context.Background(), p); err != nil || len(steps) != 0 {
			t.Errorf("after it: %v, %v", steps, err)
		}
	}
}

// The basis of a plan changes with every change, and with nothing else.
func TestBasis(t *testing.T) {
	b := newBench(t)
	basis := func() string {
		t.Helper()
		text, err := b.Basis()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	text := b.policyText("  gold:\n    match: [{port: 4000}]\n    priority: 15\n")
	empty := basis()
	b.apply(t, text)
	applied := basis()
	if _, err := b.Status(context.Background()); err != nil {
		t.Fatal(err)
	}
	if empty == applied || basis() != applied {
		t.Errorf("empty %s, applied %s, then %s", empty, applied, basis())
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if basis() != empty {
		t.Error("after a reset the basis is not that of a host without Weir")
	}
}

// Held names what a reset takes away.
func TestHeld(t *testing.T) {
	b := newBench(t)
	held, err := b.Held()
	if err != nil || len(held) != 0 {
		t.Fatalf("at the beginning: %v, %v", held, err)
	}
	b.apply(t, b.policyText("  gold:\n    match: [{port: 4000}]\n    priority: 15\n"))
	held, err = b.Held()
	want := []plan.Difference{
		{Op: plan.Remove, Object: "link " + b.link.Name, Detail: "htb with 8 classes at 100Mbit; noqueue is back"},
		{Op: plan.Remove, Object: "workload gold", Detail: "its packets are nobody's"},
	}
	if diff := cmp.Diff(want, held); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if names, err := b.LinkNames(); err != nil || len(names) != 1 || names[0] != b.link.Name {
		t.Errorf("links %v, %v", names, err)
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if held, err := b.Held(); err != nil || len(held) != 0 {
		t.Errorf("after a reset: %v, %v", held, err)
	}
}
