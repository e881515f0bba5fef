package policy

import (
	"cmp"
	"net/netip"
	"slices"
)

// claims reports what two workloads both lay claim to, and workloads that no
// packet can reach because another one gets all of theirs.
func claims(workloads []Workload) Errors {
	c := claimed{
		single: make(map[claimKey]claim),
		flows:  make(map[flowKey][]portClaim),
		told:   make(map[*Selector]bool),
	}
	for i := range workloads {
		for j := range workloads[i].Match {
			c.add(&workloads[i], &workloads[i].Match[j])
		}
	}
	c.checkFlows()
	c.checkShadows(workloads)
	return c.errs
}

// claimKey is what makes two selectors the same. A unit is the cgroup that it
// stands for.
type claimKey struct {
	kind   Kind
	pid    uint32
	cgroup Cgroup
	text   string
}

// flowKey is what makes two flows the same but for their ports.
type flowKey struct {
	protocol int16
	prefix   netip.Prefix
	dscp     int8
	ported   bool
}

type claim struct {
	workload *Workload
	selector *Selector
}

type portClaim struct {
	PortRange
	claim
	order int
}

type claimed struct {
	errs   Errors
	single map[claimKey]claim
	flows  map[flowKey][]portClaim
	told   map[*Selector]bool
	count  int // of port ranges, for the order of the file
}

func (c *claimed) add(w *Workload, s *Selector) {
	mine := claim{w, s}
	key := claimKey{kind: s.Kind}
	switch s.Kind {
	case KindPID:
		key.pid = s.PID
	case KindCgroup, KindUnit:
		key.kind, key.cgroup = KindCgroup, s.Cgroup
	case KindUser:
		key.text = s.User
	case KindExe:
		key.text = s.Exe
	case KindFlow:
		c.addFlow(mine)
		return
	}
	if first, twice := c.single[key]; twice {
		c.conflict(mine, first, s.String())
		return
	}
	c.single[key] = mine
}

func (c *claimed) addFlow(mine claim) {
	f := mine.selector.Flow
	key := flowKey{f.Protocol, f.Prefix, f.DSCP, len(f.Ports) > 0}
	ports := f.Ports
	if !key.ported {
		ports = []PortRange{{}}
	}
	for _, r := range ports {
		c.count++
		c.flows[key] = append(c.flows[key], portClaim{r, mine, c.count})
	}
}

// checkFlows reports flows that differ in nothing but overlap in their ports.
// Ranges are entries of one table, port by port, so there is no nearer one.
func (c *claimed) checkFlows() {
	for _, ranges := range c.flows {
		slices.SortFunc(ranges, func(a, b portClaim) int {
			return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.order, b.order))
		})
		widest := ranges[0]
		for _, r := range ranges[1:] {
			if r.First <= widest.Last && r.selector != widest.selector {
				first, second := widest, r
				if first.order > second.order {
					first, second = second, first
				}
				shared := second.selector.Flow
				if len(shared.Ports) > 0 {
					shared.Ports = []PortRange{{r.First, min(r.Last, widest.Last)}}
				}
				c.conflict(second.claim, first.claim, shared.String())
			}
			if r.Last > widest.Last {
				widest = r
			}
		}
	}
}

// conflict reports that a selector is claimed for the second time.
func (c *claimed) conflict(second, first claim, what string) {
	message := quoteless(what) + " already belongs to workload " + quote(first.workload.Name)
	if first.workload == second.workload {
		message = quoteless(what) + " is listed twice in workload " + quote(first.workload.Name)
	}
	if c.told[second.selector] {
		return // one finding a selector is enough
	}
	c.told[second.selector] = true
	c.errs = append(c.errs, Diagnostic{
		Span:    second.selector.Span,
		Message: message,
		Related: []Related{{first.selector.Span, "first claimed here"}},
	})
}

// checkShadows reports workloads whose every selector loses to one that claims
// all local sockets: the root of the v2 hierarchy, of which every cgroup is a
// descendant, comes before users and executables. Flows still get what the host
// forwards, and net_prio does not go through this order.
func (c *claimed) checkShadows(workloads []Workload) {
	all, there := c.single[claimKey{kind: KindCgroup, cgroup: Cgroup{Pattern: "/"}}]
	if !there {
		all, there = c.single[claimKey{kind: KindCgroup, cgroup: Cgroup{Pattern: "/**"}}]
	}
	if !there || all.workload.Via != ViaBPF {
		return
	}
	for i := range workloads {
		w := &workloads[i]
		reachable := len(w.Match) == 0 || w.Via != ViaBPF || w == all.workload
		for _, s := range w.Match {
			reachable = reachable || s.Kind != KindUser && s.Kind != KindExe
		}
		if !reachable {
			c.errs = append(c.errs, Diagnostic{
				Span:    w.Span,
				Message: "no packet can reach workload " + quote(w.Name) + ": cgroups come before users and executables",
				Related: []Related{{all.selector.Span, "this is every cgroup"}},
			})
		}
	}
}
