package tc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// TestShareSteps: shares come, change and go one by one in a tree that stands; what
// is not Weir's does not.
func TestShareSteps(t *testing.T) {
	with := func(shares ...plan.Share) plan.Queue {
		return plan.Queue{Scheduler: policy.HTB, Rate: 100_000_000, Classes: 2, Leaf: plan.LeafBFIFO, Map: plan.SpreadOver(2), Shares: shares}
	}
	one, other, nobodys := plan.Share{Min: 1_000_000}, plan.Share{Min: 2_000_000, Class: 1}, plan.Share{}
	built := func(q plan.Queue) entries { return dumped(mustBuild(t, q)) }
	stray := func(handle, parent uint32) entry {
		e, _ := built(with(one)).find(true, shareLeafID(0, 0))
		e.handle, e.parent = handle, parent
		return e
	}
	addOther := []string{
		"add htb class 7e1f:3001 at 7e1f:1 (rate 2Mbit, ceil 100Mbit, burst 1311b (81920 ticks), cburst 65536b)",
		"add htb class 7e1f:2010 at 7e1f:3001 (rate 8bit, ceil 100Mbit, burst 1b, cburst 65536b, prio 0, quantum 130816)",
		"add bfifo qdisc 5008: at 7e1f:2010 (limit 250000b)",
	}
	for _, test := range []struct {
		name string
		have entries
		want plan.Queue
		ops  []string
	}{
		{"one more", built(with(one)), with(one, other), addOther},
		{"another rate", built(with(one)), with(plan.Share{Min: 3_000_000}), []string{
			"change htb class 7e1f:3000 at 7e1f:1: rate is 1Mbit, not 3Mbit, burst is 655b (81920 ticks), not 1966b (81920 ticks)",
		}},
		{"a limit as well", built(with(one)), with(plan.Share{Min: 1_000_000, Max: 10_000_000}), []string{
			"change htb class 7e1f:3000 at 7e1f:1: ceil is 100Mbit, not 10Mbit, cburst is 65536b, not 12500b",
			"change bfifo qdisc 5000: at 7e1f:2000: limit is 250000b, not 81920b",
		}},
		{"a limit alone", built(with(plan.Share{Min: 1_000_000, Max: 10_000_000})), with(plan.Share{Max: 10_000_000}), []string{
			"change htb class 7e1f:3000 at 7e1f:1: rate is 1Mbit, not 1Kbit, burst is 655b (81920 ticks), not 1518b",
		}},
		{"a share beside a limit", built(with(plan.Share{Max: 10_000_000}, one)), with(plan.Share{Min: 1_000_000, Max: 10_000_000}, one), []string{
			"delete htb class 7e1f:2000 at 7e1f:3000",
			"delete htb class 7e1f:3000 at 7e1f:1",
			"add htb class 7e1f:3000 at 7e1f:1 (rate 1Mbit, ceil 10Mbit, burst 655b (81920 ticks), cburst 12500b)",
			"add htb class 7e1f:2000 at 7e1f:3000 (rate 8bit, ceil 100Mbit, burst 1b, cburst 65536b, prio 1, quantum 65791)",
			"add bfifo qdisc 5000: at 7e1f:2000 (limit 81920b)",
		}},
		{"another limit", built(with(plan.Share{Max: 10_000_000})), with(plan.Share{Max: 100_000_000}), []string{
			"change htb class 7e1f:3000 at 7e1f:1: ceil is 10Mbit, not 100Mbit, cburst is 12500b, not 65536b",
			"change bfifo qdisc 5000: at 7e1f:2000: limit is 81920b, not 250000b",
		}},
		{"another class", built(with(one)), with(plan.Share{Min: 1_000_000, Class: 1}), []string{
			"delete bfifo qdisc 5000: at 7e1f:2000",
			"change htb class 7e1f:2000 at 7e1f:3000: prio is 1, not 0, quantum is 65791, not 130816",
			"add bfifo qdisc 5000: at 7e1f:2000 (limit 250000b)",
		}},
		{"one less", built(with(one, other)), with(one), []string{
			"delete htb class 7e1f:2010 at 7e1f:3001", "delete htb class 7e1f:3001 at 7e1f:1",
		}},
		{"the first less", built(with(one, other)), with(nobodys, other), []string{
			"delete htb class 7e1f:2000 at 7e1f:3000", "delete htb class 7e1f:3000 at 7e1f:1",
		}},
		{"behind one that is nobody's", built(with()), with(nobodys, other), addOther},
		{"none", built(with(one, other)), with(), []string{
			"delete htb class 7e1f:2010 at 7e1f:3001", "delete htb class 7e1f:3001 at 7e1f:1",
			"delete htb class 7e1f:2000 at 7e1f:3000", "delete htb class 7e1f:3000 at 7e1f:1",
		}},
		{"a stray leaf", append(built(with()), stray(shareLeafID(7, 1), shaperClass)), with(), []string{"delete htb class 7e1f:2071 at 7e1f:1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := steps(1, test.have, nil, mustBuild(t, test.want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.ops, words(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, e := range map[string]entry{
		"somebody's class below a share":      stray(rootHandle|0x99, shareClassID(0)),
		"a share's number of another qdisc's": stray(0x9<<16|plan.ShareMinor(3, 0), 0x9<<16),
		"a number between those of leaves":    stray(rootHandle|plan.ShareMinor(0, 9), shareClassID(0)),
	} {
		ops, err := steps(1, append(built(with(one)), e), nil, mustBuild(t, with(one)))
		if err != nil || len(ops) == 0 || ops[0].String() != "delete htb qdisc 7e1f: at the root" {
			t.Errorf("%s: %s, %v", name, opStrings(ops), err)
		}
	}
}

// TestPartOfShares: a tree that lost anything is told from one that is whole, and
// can be mended.
func TestPartOfShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := plan.Queue{Scheduler: policy.HTB, Rate: 10_000_000, Classes: 4, Leaf: plan.LeafBFIFO, Map: plan.SpreadOver(4)}
		q.Buckets = rapid.SampledFrom([]int{0, 2, 8}).Draw(t, "buckets")
		for range rapid.IntRange(0, 2).Draw(t, "nobody's") {
			q.Shares = append(q.Shares, plan.Share{})
		}
		for range rapid.IntRange(1, 5).Draw(t, "shares") {
			s := plan.Share{Class: uint8(rapid.IntRange(0, 3).Draw(t, "class"))}
			kind := rapid.SampledFrom([]string{"share", "limit", "both"}).Draw(t, "kind")
			if kind != "limit" {
				s.Min = 8 * policy.Rate(rapid.IntRange(1000, 250_000).Draw(t, "min"))
			}
			if kind != "share" {
				s.Max = 8 * policy.Rate(rapid.IntRange(max(int(s.Min/8), 1000), 1_250_000).Draw(t, "max"))
			}
			q.Shares = append(q.Shares, s)
		}
		q = q.Normal()
		whole := mustBuild(t, q)
		part := append([]node{}, whole...)
		for range rapid.IntRange(0, 3).Draw(t, "lost") {
			at := rapid.IntRange(1, len(part)-1).Draw(t, "at")
			part = append(part[:at], part[at+1:]...)
		}
		all := dumped(part)
		got, err := all.recognise()
		if err != nil {
			t.Fatal(err)
		}
		missing := true
		if claimed, err := build(got, 0); err == nil {
			found, err := drift(all, nil, claimed)
			if err != nil {
				t.Fatal(err)
			}
			missing = len(found) > 0
		}
		if same := got.Equal(q) && !missing; same != (len(part) == len(whole)) {
			t.Errorf("%d of %d parts are read as %+v, of %+v", len(part), len(whole), got, q)
		}
		ops, err := steps(1, all, nil, whole)
		if err != nil || len(ops) != len(whole)-len(part) {
			t.Errorf("to mend it: %s, %v", opStrings(ops), err)
		}
	})
}

// TestShareSizes: at any rate, all shares together have in store no more than the
// line, and one borrows by the quantum of its class.
func TestShareSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Uint64Range(uint64(plan.MinRate)/8*plan.MaxShares, 1e12/8).Draw(t, "rate")
		q := plan.Queue{Scheduler: policy.HTB, Rate: policy.Rate(rate * 8), Classes: 4, Leaf: plan.LeafBFIFO, Map: plan.SpreadOver(4)}
		q.Buckets = rapid.SampledFrom([]int{0, 8}).Draw(t, "buckets")
		count := rapid.IntRange(1, plan.MaxShares).Draw(t, "shares")
		for n := range count {
			q.Shares = append(q.Shares, plan.Share{Min: q.Rate / policy.Rate(count) / 8 * 8, Class: uint8(n % 4)})
		}
		all := dumped(mustBuild(t, q)).index()
		store := float64(0)
		for n, s := range q.Shares {
			o, _, err := all.htbClass(shareClassID(n))
			if err != nil {
				t.Fatal(err)
			}
			store += float64(o.burst) * tick / 1e9 * float64(o.rate)
			leaves := uint64(0)
			for b := range q.Leaves() {
				share, _, err := all.htbClass(shareLeafID(n, b))
				class, _, err2 := all.htbClass(htbClassID(q, int(s.Class), b))
				if err != nil || err2 != nil || share.quantum != class.quantum || share.prio != class.prio || share.ceil != class.ceil {
					t.Errorf("share %d borrows as %+v, its class as %+v", n, share, class)
				}
				leaves += share.rate
			}
			if leaves > uint64(s.Min)/8 {
				t.Errorf("the leaves of share %d have %d of its %d byte/s", n, leaves, s.Min/8)
			}
		}
		const rounding = 1e-9 // of a sum of floats
		if store > float64(burst(rate))*(1+rounding) {
			t.Errorf("%d shares have %.0f bytes in store, the line %d", count, store, burst(rate))
		}
	})
}

// TestSpare: the shaper has more than the line where shares come to all of it, so that
// nothing owes it more and more, and the line's rate is read back all the same.
func TestSpare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Uint64Range(1000, 5e10).Draw(t, "rate")
		part := rapid.Uint64Range(0, 100).Draw(t, "percent")
		q := plan.Queue{Rate: policy.Rate(rate * 8), Shares: []plan.Share{{Min: policy.Rate(rate * part / 100 * 8)}}}
		shaped := shaperOf(q, rate)
		if part <= 98 && shaped.rate != rate || part == 100 && shaped.rate < rate+rate/600 {
			t.Errorf("%d %% of %d: shaped to %+v", part, rate, shaped)
		}
		if back := lineOf(shaped); back != rate {
			t.Errorf("%d %% of %d: shaped to %+v, read back as %d", part, rate, shaped, back)
		}
	})
}
