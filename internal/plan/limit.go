package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-net/weir/internal/policy"
)

// A Limit is what the packets of one contract may take of all links together.
type Limit struct {
	Max policy.Rate // in bits on the wire, the Ethernet header included; 0: no limit
}

// LimitOf is a contract's limit as the kernel holds it and gives it back: in
// whole bytes a second.
func LimitOf(e policy.Egress) Limit { return Limit{e.Max - e.Max%8} }

// limitsOf are the limits of all contracts that have one.
func limitsOf(p *policy.Policy, ids IDs, explicit []Explicit) map[ContractID]Limit {
	limits := map[ContractID]Limit{}
	add := func(name string, of policy.Contract) {
		if l := LimitOf(of.Egress); l.Max != 0 {
			limits[ids.Names[name].ID] = l
		}
	}
	for _, w := range p.Workloads {
		if w.Via == policy.ViaBPF {
			add(w.Name, w.Contract)
		}
	}
	for _, e := range explicit {
		add(e.Name, e.Contract)
	}
	return limits
}

// Terms puts into words what a contract promises: "priority 3, at most 50Mbit".
func Terms(of policy.Contract) string {
	var terms []string
	if !of.Priority.Empty() {
		terms = append(terms, "priority "+of.Priority.String())
	}
	if of.Egress.Max != 0 || terms == nil {
		terms = append(terms, Limit{of.Egress.Max}.String())
	}
	return strings.Join(terms, ", ")
}

// Promise is the limit as a promise of its contract, in words: "egress at most
// 50Mbit".
func (l Limit) Promise() string { return "egress " + l.String() }

// String puts a limit into words.
func (l Limit) String() string {
	if l.Max == 0 {
		return "not limited"
	}
	return "at most " + l.Max.String()
}

// unlike says how two limits differ, "" if they do not.
func (l Limit) unlike(other Limit) string {
	if l == other {
		return ""
	}
	return l.Promise() + " -> " + other.String()
}

// limited says whether a contract is charged to its limit on one link.
func limited(p Promise) string {
	if p.Limited {
		return "limited"
	}
	return "not limited"
}

// LimitWindow is the time over which a limit is judged: shorter ones have too few
// packets of a low limit to tell.
const LimitWindow = 5 * time.Second

// bound is the most that a window may have: 2 % above the limit, and one packet of
// the size that TCP hands to a device at once.
func (l Limit) bound() policy.Rate {
	const packet = 8 * 64 << 10 // bits
	return l.Max + l.Max/50 + policy.Rate(packet*uint64(time.Second)/uint64(LimitWindow))
}

// Held is what became of the packets of one contract since the last apply.
type Held struct {
	Bytes           uint64      // let through; on the wire
	Dropped, Marked uint64      // packets: above the limit, or close to it and told so by ECN
	Last, Most      policy.Rate // in bits on the wire, over the last whole LimitWindow, and over the busiest one
}

// String puts into words how close a contract came to its limit.
func (h Held) String() string {
	if h.Bytes+h.Dropped == 0 {
		return "no packet yet"
	}
	text := fmt.Sprintf("%s in the last %g s, %s in the busiest; ", threeDigits(h.Last), LimitWindow.Seconds(), threeDigits(h.Most))
	if h.Most == 0 {
		text = fmt.Sprintf("not measured for %g s yet; ", LimitWindow.Seconds())
	}
	if h.Dropped+h.Marked == 0 {
		return text + "no packet dropped or marked"
	}
	return text + fmt.Sprintf("%d packets dropped, %d marked", h.Dropped, h.Marked)
}

// threeDigits rounds a rate for reading.
func threeDigits(r policy.Rate) policy.Rate {
	unit := policy.Rate(1)
	for r/unit >= 1000 {
		unit *= 10
	}
	return (r + unit/2) / unit * unit
}
