package bpf

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// numberFor is the number of an owner's budget.
func numberFor(t *testing.T, g *Generation, of plan.Owner) budgetNumber {
	t.Helper()
	all, err := g.numbers()
	if err != nil {
		t.Fatal(err)
	}
	return all.of[of].number
}

func lookUpBudget(t *testing.T, g *Generation, n budgetNumber) (b limitBudget) {
	t.Helper()
	if err := g.memory.budgets.Lookup(uint32(n), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// givenAhead is what a budget has given all CPUs ahead.
func givenAhead(t *testing.T, g *Generation, n budgetNumber) (bytes uint64) {
	t.Helper()
	var each []uint64
	if err := g.memory.credits.Lookup(uint32(n), &each); err != nil {
		t.Fatal(err)
	}
	for _, n := range each {
		bytes += n
	}
	return bytes
}

// giveAhead has a budget give each CPU so many bytes ahead.
func giveAhead(t *testing.T, g *Generation, n budgetNumber, bytes uint64) {
	t.Helper()
	possible, err := ebpf.PossibleCPU()
	if err == nil {
		err = g.memory.credits.Put(uint32(n), slices.Repeat([]uint64{bytes}, possible))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// used makes a budget look as if its flows had voted.
func used(t *testing.T, g *Generation, of plan.Owner) limitBudget {
	t.Helper()
	n := numberFor(t, g, of)
	b := lookUpBudget(t, g, n)
	b.Tick, b.Load, b.Total, b.Dropped = 7, 3<<10, 13, 14
	b.Ring[9] = 3 << 10
	if err := g.putBudget(n, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBudgetsOutliveGenerations: what the next generation limits as well goes on
// under its number, and what it does not is gone for those that have a stake in it.
func TestBudgetsOutliveGenerations(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	room := newRoom(t)
	const one, two, three = plan.FirstID, plan.FirstID + 1, plan.FirstID + 2
	limits := func(all map[plan.ContractID]plan.Limit) plan.Rules {
		r := noRules()
		r.Limits = all
		return r
	}
	first := begin(t, room, 1, limits(map[plan.ContractID]plan.Limit{one: {Max: 1e6}, two: {Max: 2e6}, three: {Max: 3e6}}), bare)
	same, changed := used(t, first, plan.Owner{Contract: one}), used(t, first, plan.Owner{Contract: two})
	kept, gone := numberFor(t, first, plan.Owner{Contract: one}), numberFor(t, first, plan.Owner{Contract: three})
	giveAhead(t, first, kept, 1000)
	giveAhead(t, first, gone, 1000)
	second := begin(t, room, 2, limits(map[plan.ContractID]plan.Limit{one: {Max: 1e6}, two: {Max: 9e6}}), bare)
	if got := lookUpBudget(t, second, gone); got.Limit == 0 {
		t.Error("a limit is gone while packets are charged to it")
	}
	if err := second.SettleLimits(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(same, lookUpBudget(t, second, numberFor(t, second, plan.Owner{Contract: one}))); diff != "" {
		t.Errorf("the same limit (-want +got):\n%s", diff)
	}
	got := lookUpBudget(t, second, numberFor(t, second, plan.Owner{Contract: two}))
	if got.Limit != 9e6/8 || got.Load != 0 || got.Total != 0 || got.Serial != changed.Serial+1 {
		t.Errorf("another limit of the same owner: %+v", got)
	}
	if diff := cmp.Diff(limitBudget{Serial: 1}, lookUpBudget(t, second, gone)); diff != "" {
		t.Errorf("a limit that is gone (-want +got):\n%s", diff)
	}
	if givenAhead(t, second, kept) == 0 || givenAhead(t, second, gone) != 0 {
		t.Errorf("what was given ahead: %d bytes of a limit that stays, %d of one that is gone", givenAhead(t, second, kept), givenAhead(t, second, gone))
	}
	// Its number may be another's now, whom its stakes are not in.
	third := begin(t, room, 3, limits(map[plan.ContractID]plan.Limit{one: {Max: 1e6}, two: {Max: 9e6}, three + 1: {Max: 4e6}}), bare)
	if b := lookUpBudget(t, third, gone); b.Limit != 4e6/8 || b.Serial != 1 {
		t.Errorf("the next one under this number: %+v", b)
	}
}

// TestBudgetsGrow makes room for more limits than there was room for.
func TestBudgetsGrow(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	room := newRoom(t)
	few, many := noRules(), noRules()
	few.Limits, many.Limits = map[plan.ContractID]plan.Limit{}, map[plan.ContractID]plan.Limit{}
	for i := range plan.ContractID(3 * spareLimits) {
		many.Limits[plan.FirstID+i] = plan.Limit{Max: 1e6}
	}
	few.Limits[plan.FirstID+spareLimits] = plan.Limit{Max: 1e6}
	of := plan.Owner{Contract: plan.FirstID + spareLimits}
	g := begin(t, room, 1, few, bare)
	room1 := g.memory.budgets.MaxEntries()
	want := used(t, g, of)
	larger := begin(t, room, 2, many, bare)
	if n := larger.memory.budgets.MaxEntries(); n <= room1 || n < 3*spareLimits {
		t.Errorf("room for %d limits, and for %d before", n, room1)
	}
	if diff := cmp.Diff(want, lookUpBudget(t, larger, numberFor(t, larger, of))); diff != "" {
		t.Errorf("what was known of a limit (-want +got):\n%s", diff)
	}
	again, err := room.Open(2)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if diff := cmp.Diff(want, lookUpBudget(t, again, numberFor(t, again, of))); diff != "" {
		t.Errorf("opened again (-want +got):\n%s", diff)
	}
}
