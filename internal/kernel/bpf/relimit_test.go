package bpf

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// A limit comes, changes and goes while its generation is in force.
func TestSetLimit(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	g := begin(t, newRoom(t), 1, noRules(), Options{Controller: -1, Limits: true})
	has := func(want map[plan.ContractID]plan.Limit) {
		t.Helper()
		got, err := g.limits()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limits (-want +got):\n%s", diff)
		}
		if has, err := g.HasLimits(); err != nil || has != (len(want) > 0) {
			t.Errorf("has limits: %v, %v", has, err)
		}
	}
	set := func(id plan.ContractID, l plan.Limit) {
		t.Helper()
		if err := g.SetLimit(id, l); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(id plan.ContractID) {
		t.Helper()
		if err := g.RemoveLimit(id); err != nil {
			t.Fatal(err)
		}
	}
	const one, two = plan.FirstID, plan.FirstID + 1
	has(nil)
	set(one, plan.Limit{Max: 64e3})
	set(two, plan.Limit{Max: 100e9})
	has(map[plan.ContractID]plan.Limit{one: {Max: 64e3}, two: {Max: 100e9}})
	set(one, plan.Limit{Max: 1e6})
	has(map[plan.ContractID]plan.Limit{one: {Max: 1e6}, two: {Max: 100e9}})
	remove(one)
	remove(one)
	has(map[plan.ContractID]plan.Limit{two: {Max: 100e9}})
	remove(two)
	has(nil)
}

// A budget whose limit changes is the same one: what it knows of its flows stays,
// and what was sent at the old limit counts neither for nor against the new one.
func TestRelimit(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	g := begin(t, newRoom(t), 1, noRules(), Options{Controller: -1, Limits: true})
	const id, late = uint32(1), 1 << 62
	of := plan.Owner{Contract: plan.FirstID}
	if err := g.SetLimit(plan.FirstID, plan.Limit{Max: 100e6}); err != nil {
		t.Fatal(err)
	}
	was := newBudget(of, amount{rate: 100e6 / 8})
	was.Tick, was.Load, was.Start, was.Bytes, was.Total, was.Dropped, was.Marked = 7, 3<<10, 11, 12, 13, 14, 15
	was.Others.Vote, was.Others.Due = 1<<10, 9
	was.Ring[9] = 3 << 10
	want := was
	was.Sent, was.Trim, was.Paid, was.StreamsPaid = 0, 1000, late, late
	was.Window, was.InWindow, was.Last, was.Busiest = 16, 17, 18, 19
	table := g.memory.budgets
	if err := table.Put(id, was); err != nil {
		t.Fatal(err)
	}
	giveAhead(t, g, budgetNumber(id), 1<<20)
	if err := g.SetLimit(plan.FirstID, plan.Limit{Max: 64e3}); err != nil {
		t.Fatal(err)
	}
	if left := givenAhead(t, g, budgetNumber(id)); left != 0 {
		t.Errorf("%d bytes are left of what the old limit gave ahead", left)
	}
	var got limitBudget
	if err := table.Lookup(id, &got); err != nil {
		t.Fatal(err)
	}
	if got.Window == was.Window || got.Paid == was.Paid || got.StreamsPaid == was.StreamsPaid {
		t.Errorf("the window began at %d, the bucket is paid until %d", got.Window, got.Paid)
	}
	fresh := newBudget(of, amount{rate: 64e3 / 8})
	want.Limit, want.TickLength, want.TickBytes, want.Depth = fresh.Limit, fresh.TickLength, fresh.TickBytes, fresh.Depth
	want.Sent, want.Trim = fresh.Sent, fresh.Trim
	want.Window, want.Paid, want.StreamsPaid = got.Window, got.Paid, got.StreamsPaid
	// One of three flows has a third, in whole bytes a second.
	share := fresh.Limit / 3
	want.Price, want.Chunk = 16*1e9*1024/share+1, share*(10e6/4/cpus())/1e9
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("budget (-want +got):\n%s", diff)
	}
}

func TestSetLimitRefused(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	room := newRoom(t)
	limit := plan.Limit{Max: 1e6}
	if err := begin(t, room, 1, noRules(), bare).SetLimit(plan.FirstID, limit); !errors.Is(err, ErrNoLimits) {
		t.Errorf("programs that charge nobody: %v", err)
	}
	g := begin(t, room, 2, noRules(), Options{Controller: -1, Limits: true})
	for n := range plan.ContractID(spareLimits) {
		if err := g.SetLimit(plan.FirstID+n, limit); err != nil {
			t.Fatalf("limit %d: %v", n, err)
		}
	}
	if err := g.SetLimit(plan.FirstID+spareLimits, limit); !errors.Is(err, ErrFull) {
		t.Errorf("one more than there is room for: %v", err)
	}
	if err := g.SetLimit(plan.FirstID, plan.Limit{Max: 2e6}); err != nil {
		t.Errorf("a change where the table is full: %v", err)
	}
}
