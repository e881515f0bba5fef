package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-net/weir/internal/fair"
	"github.com/weir-net/weir/internal/policy"
)

// A Limit is what some packets may take: those that leave of one contract, of all links
// together or of one alone; those that its sockets receive; or those of one link, in
// one direction.
type Limit struct {
	Max   policy.Rate       // in bits on the wire, the Ethernet header included; 0: no limit
	Burst policy.Size       // what may pass at once below Max of that which nobody can pace; 0: what package fair has
	PPS   policy.PacketRate // of packets, each segment as it is on the wire; 0: no limit
	// Departs says that departure times hold Max: no budget is charged.
	Departs bool
	// Answers says of what sockets receive that what they answer waits: for its time, or in a class
	// of the queue that [Waiting] is, as skb->priority names it; 0 is for its time.
	Answers bool
	Class   uint32
}

// LimitOf is a contract's limit of all links together.
func LimitOf(e policy.Egress) Limit { return limitTo(e.Limit) }

// ArrivingOf is what the sockets of a contract may receive.
func ArrivingOf(of policy.Contract) Limit {
	l := limitTo(of.Ingress.Limit)
	l.Answers, l.Departs = l.Departs, false
	return l
}

// limitTo is a limit as the kernel holds it and gives it back: in whole bytes a
// second.
func limitTo(l policy.Limit) Limit {
	return Limit{Max: l.Max - l.Max%8, Burst: l.Burst, PPS: l.PPS, Departs: l.Max != 0 && l.Method == policy.MethodEDT}
}

// none reports that nothing is limited.
func (l Limit) none() bool { return l == Limit{} }

// Amounts are the limits of one unit each that hold where this one does: of bandwidth,
// and of packets.
func (l Limit) Amounts() (all []Limit) {
	if l.Max != 0 {
		all = append(all, Limit{Max: l.Max, Burst: l.Burst, Departs: l.Departs, Answers: l.Answers, Class: l.Class})
	}
	if l.PPS != 0 {
		all = append(all, Limit{PPS: l.PPS})
	}
	return all
}

// limitsOf are the limits of all links together, and of what sockets receive, of all
// contracts that have them.
func limitsOf(p *policy.Policy, ids IDs, explicit []Explicit) (together, arriving map[ContractID]Limit) {
	together, arriving = map[ContractID]Limit{}, map[ContractID]Limit{}
	add := func(name string, of policy.Contract) {
		if l := LimitOf(of.Egress); !l.none() {
			together[ids.Names[name].ID] = l
		}
		if l := ArrivingOf(of); !l.none() {
			arriving[ids.Names[name].ID] = l
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
	for name, n := range ids.Shares[WaitingRoom] {
		id := ids.Names[name].ID
		l := arriving[id]
		l.Answers, l.Class = true, Queue{}.WrittenShare(n)
		arriving[id] = l
	}
	return together, arriving
}

// limitedBut are the contracts that have limits, but for those that are known.
func (s State) limitedBut(known map[ContractID]bool) []ContractID {
	all := map[ContractID]bool{}
	for _, limits := range []map[ContractID]Limit{s.Rules.Limits, s.Rules.Arriving} {
		for id := range limits {
			all[id] = !known[id]
		}
	}
	for id := range s.Rules.Memory {
		all[id] = !known[id]
	}
	for id := range s.Bound {
		all[id] = !known[id]
	}
	for id := range s.Memcg {
		all[id] = !known[id]
	}
	for of := range s.Rules.Toward {
		all[of.Contract] = !known[of.Contract]
	}
	for of := range s.Rules.Blocs {
		all[of.Member] = !known[of.Member]
	}
	for _, l := range s.Links {
		for id, p := range l.Rules.Contracts {
			all[id] = !known[id] && (all[id] || !p.Here.none())
		}
	}
	maps.DeleteFunc(all, func(_ ContractID, stray bool) bool { return !stray })
	return slices.Sorted(maps.Keys(all))
}

// Promise is the limit as a promise of its contract, in words: "egress at most
// 50Mbit".
func (l Limit) Promise() string { return "egress " + l.String() }

// String puts a limit into words: "at most 50Mbit", "at most 20000 packets/s", "at most
// 50Mbit and 20000 packets/s".
func (l Limit) String() string {
	switch {
	case l.none():
		return "not limited"
	case l.PPS == 0:
		return "at most " + l.bandwidth()
	case l.Max == 0:
		return "at most " + l.PPS.String()
	}
	return "at most " + l.bandwidth() + " and " + l.PPS.String()
}

// bandwidth puts the limit of bandwidth into words: "50Mbit", "50Mbit (1MiB at once)".
func (l Limit) bandwidth() string {
	switch {
	case l.Class != 0:
		return l.Max.String() + " by " + string(policy.MethodHTB)
	case l.Departs, l.Answers:
		return l.Max.String() + " by " + string(policy.MethodEDT)
	case l.Burst == 0:
		return l.Max.String()
	}
	return l.Max.String() + " (" + l.Burst.String() + " at once)"
}

// unlike says how two limits of what goes by a name differ, "" if they do not:
// "egress not limited -> at most 50Mbit".
func (l Limit) unlike(other Limit, name string) string {
	if l == other {
		return ""
	}
	return name + " " + l.String() + " -> " + other.String()
}

// LimitWindow is the time over which a limit is judged: shorter ones have too few
// packets of a low limit to tell.
const LimitWindow = 5 * time.Second

// bound is the most that a window may have, in bits or packets a second: 2 % above the
// limit, one packet of the size that TCP and UDP hand to a device at once, and what its
// buckets had collected before: as much as was told, or else, where TCP came that nobody
// paces, what that has by itself.
func (l Limit) bound(streams bool) uint64 {
	const packet, segments = 8 * 64 << 10, 128 // bits; UDP_MAX_SEGMENTS
	most, once := uint64(l.Max), uint64(packet)
	if l.PPS != 0 {
		most, once = uint64(l.PPS), segments
	}
	bound := most + most/50 + once*uint64(time.Second)/uint64(LimitWindow)
	switch {
	case l.Burst != 0:
		bound += 8 * uint64(l.Burst) * uint64(time.Second) / uint64(LimitWindow)
	case streams:
		const ms = uint64(time.Millisecond)
		bound += most / (uint64(LimitWindow) / ms) * (fair.StreamBurst / ms)
	}
	return bound
}
