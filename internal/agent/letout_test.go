package agent

import (
	"testing"

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
