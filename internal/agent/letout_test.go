package agent

import (
	"testing"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// TestCrowd: all that waits joins a class that is let out, but for what was raised and what
// its own class holds to a limit.
func TestCrowd(t *testing.T) {
	q := plan.Queue{
		Scheduler: policy.HTB, Rate: 100_000_000, Classes: 8, Leaf: plan.LeafBFIFO, Map: plan.SpreadOver(8),
		Shares: []plan.Share{{Min: 1_000_000}, {Max: 1_000_000, Class: 7}, {Min: 1_000_000, Max: 2_000_000}},
	}
	written := map[plan.ContractID]uint32{
		20: q.Written(15), 21: q.Written(14), 22: q.Written(8), 23: q.WrittenShare(0), 24: q.WrittenShare(1), 25: q.WrittenShare(2),
	}
	all := &crowd{link: state.LinkRecord{Queue: q}, rules: plan.LinkRules{Contracts: map[plan.ContractID]plan.Promise{}}, raised: rise{id: 21},
		busy: map[place]bool{{false, 7}: true, {true, 0}: true, {true, 1}: true, {true, 2}: true}}
	for id, priority := range written {
		all.rules.Contracts[id] = plan.Promise{Priority: priority}
	}
	for id, want := range map[plan.ContractID]bool{20: true, 21: false, 22: false, 23: true, 24: false, 25: false} {
		if all.joins(id) != want {
			t.Errorf("contract %d joins: %v", id, !want)
		}
	}
}

// TestLeft: what waited in a queue has left when as much was sent. Where each flow has a queue of
// its own, what others sent from theirs says nothing of it. What waits there then came after it.
func TestLeft(t *testing.T) {
	one := func(sent, waits uint64) tc.ClassCounters {
		return tc.ClassCounters{Buckets: [plan.MaxBuckets]tc.Bucket{{Bytes: sent, Backlog: waits}}}
	}
	many := func(sent uint64, flows map[uint32]uint64) tc.ClassCounters {
		c := one(sent, 0)
		for _, waits := range flows {
			c.Buckets[0].Backlog += waits
		}
		c.Flows = flows
		return c
	}
	flows := func(waits ...uint64) map[uint32]uint64 {
		all := map[uint32]uint64{}
		for n, bytes := range waits {
			if bytes > 0 {
				all[uint32(n)] = bytes
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		was, is tc.ClassCounters
		want    bool
	}{
		"nothing waited":             {one(100, 0), one(100, 50), false},
		"nothing was sent":           {one(100, 50), one(100, 50), true},
		"part of it was sent":        {one(100, 50), one(149, 70), true},
		"others wait behind it":      {one(100, 50), one(150, 70), false},
		"it was dropped":             {one(100, 50), one(100, 0), false},
		"flows: nothing waited":      {many(100, flows()), many(100, flows(50)), false},
		"flows: nothing was sent":    {many(100, flows(50)), many(100, flows(50)), true},
		"flows: others were sent":    {many(100, flows(50)), many(500, flows(20, 70)), true},
		"flows: it was sent":         {many(100, flows(50)), many(150, flows(0, 70)), false},
		"flows: one of two was sent": {many(100, flows(50, 20)), many(500, flows(0, 20)), true},
		"flows: both were sent":      {many(100, flows(50, 20)), many(500, flows(0, 0, 90)), false},
	} {
		if got := left(c.was, c.is, 0); got != c.want {
			t.Errorf("%s: left is %v", name, got)
		}
		if got, want := joined(c.was, c.is, 0), !c.want && c.is.Buckets[0].Backlog > 0; got != want {
			t.Errorf("%s: joined is %v", name, got)
		}
	}
}
