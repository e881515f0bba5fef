package plan

import "github.com/weir-net/weir/internal/policy"

// A State is what the kernel holds for Weir, or shall hold: the same type for
// what was read and for what is wanted, so that the difference is the plan.
type State struct {
	Rules     Rules
	Links     map[string]LinkState
	Contracts map[string]Contract // the name of a workload -> its contract
	Groups    map[string]Group    // v1 net_prio groups, by name
}

// A LinkState is one link under contract.
type LinkState struct {
	Index    int
	Queue    Queue
	Drift    string // in words: how the queue on the device differs from any that Weir builds
	Root     Qdisc  // what is at the root now
	Attached bool   // link_egress runs, and is of the generation that counts
	Rules    LinkRules
}

// A Group is a v1 net_prio cgroup: which priority its processes have on which
// interface.
type Group struct {
	Default  policy.Level
	PerLink  map[string]policy.Level
	Workload string
}

// IDs gives out contract numbers. Names keep theirs from apply to apply, so that
// counters go on and tags stay true.
type IDs struct {
	Names map[string]Contract `json:"names"`
	Next  uint16              `json:"next"` // the next serial
}

// Assign returns the ids of exactly these names, at most MaxContracts: known names
// keep theirs, new ones get a free number and a serial of their own, all others
// are forgotten. A pair of number and serial comes back after 65,535 others at
// the earliest.
func (ids IDs) Assign(names []string) IDs {
	next := IDs{Names: make(map[string]Contract, len(names)), Next: max(ids.Next, 1)}
	var used [1 << 16]bool
	for _, n := range names {
		if c, ok := ids.Names[n]; ok {
			next.Names[n] = c
			used[c.ID] = true
		}
	}
	free := FirstID
	for _, n := range names {
		if _, ok := next.Names[n]; ok {
			continue
		}
		for used[free] {
			free++
		}
		used[free] = true
		next.Names[n] = Contract{ID: free, Serial: next.Next}
		if next.Next++; next.Next == 0 {
			next.Next = 1
		}
	}
	return next
}

// Highest returns the highest number in use.
func (ids IDs) Highest() ContractID {
	highest := Unclassified
	for _, c := range ids.Names {
		highest = max(highest, c.ID)
	}
	return highest
}
