package plan

import "github.com/weir-net/weir/internal/policy"

// A State is what the kernel holds for Weir, or shall hold: the same type for
// what was read and for what is wanted, so that the difference is the plan.
type State struct {
	Rules     Rules
	Links     map[string]LinkState
	Receives  bool // socket_ingress runs, and is of the generation that counts; only Rules.Arriving needs it
	Waiting   Waiting
	Holds     bool // tcp_memory runs, and is of the generation that counts; only Rules.Memory needs it
	VRFs      map[string]VRF
	Bound     map[ContractID]string // contracts -> the VRF to which new sockets are bound
	Binds     bool                  // socket_create runs, and binds; only Bound needs it
	Contracts map[string]Contract   // the name of a workload -> its contract
	Memcg     map[ContractID]Memcg  // what v1's memory controller holds the TCP sockets of contracts to
	Groups    map[string]Group      // the name of a workload -> its v1 net_prio group
}

// Budgets is how many budgets the programs charge for it.
func (l Limit) Budgets() int {
	if l.Departs {
		return 0
	}
	return len(l.Amounts())
}

// CountLimits returns how many limits hold that are paced: on all links together, those of
// prefixes included, and on one of them alone, those of workloads and a link's own in either
// direction. One of bandwidth and of packets counts as two. What sockets may receive is on no
// link and is not counted: that is Rules.Arriving.
func (s State) CountLimits() (together, here int) {
	for _, l := range s.Links {
		for _, p := range l.Rules.Contracts {
			here += p.Here.Budgets()
		}
		for _, own := range []Limit{l.Rules.Egress, l.Rules.Ingress} {
			here += own.Budgets()
		}
	}
	for _, l := range s.Rules.Limits {
		together += l.Budgets()
	}
	return together + s.Rules.countToward(), here
}

// A LinkState is one link under contract.
type LinkState struct {
	Index    int
	Queue    Queue
	Drift    string // in words: how the queue on the device differs from any that Weir builds
	Root     Qdisc  // what is put back at the root when the link is let go; Kind "" where that is not known
	Attached bool   // link_egress runs, and is of the generation that counts
	Ingress  bool   // so does link_ingress, which a limit of what arrives needs
	Rules    LinkRules
	Policed  Policed
	Detour   Detour
}

// Arriving puts into words what all that arrives by the link is held to, on whichever rung.
func (l LinkState) Arriving() (all []string) {
	if !l.Rules.Ingress.none() {
		all = append(all, l.Rules.Ingress.String())
	}
	for _, limit := range l.Policed.Ingress {
		all = append(all, limit.ByPolice())
	}
	if l.Detour.Any() {
		all = append(all, l.Detour.words())
	}
	return all
}

// A Group is a v1 net_prio cgroup: which priority its processes have on which
// interface.
type Group struct {
	Default policy.Level
	PerLink map[string]policy.Level
}
