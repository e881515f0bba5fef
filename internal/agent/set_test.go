package agent

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/workload"
)

// A first set that fails leaves nothing: no tag, no contract, nothing in status.
func TestSetThatFails(t *testing.T) {
	b := newBench(t)
	b.apply(t, b.policyText(ironPolicy))
	before, err := b.Basis()
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	pid := sleeper(t)
	if err := b.Set(ended, pid, Terms{Priority: &policy.Priority{Default: 9}}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	const none = 1 << 30 // more than any process id
	if err := b.Set(context.Background(), none, Terms{Priority: &policy.Priority{Default: 9}}); !errors.Is(err, workload.ErrGone) {
		t.Fatalf("a process that is not there: %v", err)
	}
	if tags, err := b.tags(); err != nil || len(tags) != 0 {
		t.Errorf("tags %v, %v", tags, err)
	}
	if after, err := b.Basis(); err != nil || after != before {
		t.Errorf("something is remembered, %v", err)
	}
	b.inForce(t, b.policyText(ironPolicy), "after the sets that failed")
}

// A number that was given to another process makes a contract of its own: the
// children of the one before do not have it.
func TestSetOfReusedNumber(t *testing.T) {
	b := newBench(t)
	b.apply(t, b.policyText(ironPolicy))
	pid := sleeper(t)
	contract := func() plan.Contract {
		t.Helper()
		if err := b.Set(context.Background(), pid, Terms{Priority: &policy.Priority{Default: 9}}); err != nil {
			t.Fatal(err)
		}
		r, err := b.Scope.Load()
		if err != nil || len(r.Sets) != 1 {
			t.Fatalf("sets %+v, %v", r.Sets, err)
		}
		return r.IDs.Names[setName(pid)]
	}
	first := contract()
	if again := contract(); again != first {
		t.Errorf("a second set has contract %+v, the first %+v", again, first)
	}
	r, err := b.Scope.Load()
	if err != nil {
		t.Fatal(err)
	}
	r.Sets[0].Start-- // an older process had the number
	if err := b.Scope.Save(r); err != nil {
		t.Fatal(err)
	}
	if other := contract(); other == first {
		t.Errorf("another process has the same contract, %+v", other)
	}
	b.inForce(t, b.policyText(ironPolicy), "after it was set")
}

// BenchmarkSet changes the priority of this process back and forth.
func BenchmarkSet(b *testing.B) {
	t := newBench(b)
	t.apply(b, t.policyText("  gold: {match: [{port: 4000}], priority: 12}\n"))
	for i := 0; b.Loop(); i++ {
		if err := t.Set(context.Background(), uint32(os.Getpid()), Terms{Priority: &policy.Priority{Default: policy.Level(10 + 5*(i%2))}}); err != nil {
			b.Fatal(err)
		}
	}
}
