package plan

import (
	"fmt"

	"github.com/weir-net/weir/internal/policy"
)

// HTBClasses is the number of classes on the htb rung: HTB knows eight prios.
const HTBClasses = 8

// shaped returns the rate that a link must be held to, 0 where the device's own
// speed is the bottleneck.
func shaped(l policy.Link, f LinkFacts) policy.Rate {
	if l.Rate != 0 && (f.Speed == 0 || l.Rate < f.Speed) {
		return l.Rate
	}
	return 0
}

func climbMQPrio(l policy.Link, f LinkFacts, features Features) (Rung, string) {
	n := 1
	for n*2 <= min(f.TXQueues, policy.Levels) {
		n *= 2
	}
	switch {
	case !features.Qdiscs["mqprio"]:
		return Rung{}, "kernel has no mqprio qdisc"
	case n < 2:
		return Rung{}, "mqprio needs a device with several TX queues"
	case shaped(l, f) != 0:
		return Rung{}, "mqprio can not hold a rate below the device's own"
	case !f.MQPrioHW && l.Scheduler != policy.MQPrio:
		return Rung{}, "mqprio in hardware is tried only where the policy says scheduler: mqprio"
	}
	r := Rung{Queue: Queue{Scheduler: policy.MQPrio, Classes: n, Offload: f.MQPrioHW, Map: SpreadOver(n)}}
	if !f.MQPrioHW {
		r.Lacks = append(r.Lacks, "without hardware mqprio only places packets in queues: nothing orders the queues")
	}
	return r, ""
}

func climbBands(kind policy.Scheduler) func(policy.Link, LinkFacts, Features) (Rung, string) {
	return func(l policy.Link, f LinkFacts, features Features) (Rung, string) {
		if !features.Qdiscs[string(kind)] {
			return Rung{}, fmt.Sprintf("kernel has no %s qdisc", kind)
		}
		rate := shaped(l, f)
		if rate != 0 && !features.Qdiscs["htb"] {
			return Rung{}, fmt.Sprintf("%s needs htb above it to hold a rate, and the kernel has none", kind)
		}
		r := Rung{Queue: Queue{
			Scheduler: kind, Rate: rate, Classes: policy.Levels, Leaf: leaf(features), Map: SpreadOver(policy.Levels),
		}}
		if rate == 0 && f.Speed == 0 {
			r.Idle = true
			r.Lacks = append(r.Lacks, "the device reports no speed and the policy no rate: where nothing queues, nothing is ordered")
		}
		r.Lacks = append(r.Lacks, r.uneven()...)
		return r, ""
	}
}

func climbHTB(l policy.Link, f LinkFacts, features Features) (Rung, string) {
	rate := shaped(l, f)
	if rate == 0 {
		rate = f.Speed
	}
	switch {
	case !features.Qdiscs["htb"]:
		return Rung{}, "kernel has no htb qdisc"
	case rate == 0:
		return Rung{}, "htb needs a rate, and the device reports no speed"
	}
	r := Rung{Queue: Queue{
		Scheduler: policy.HTB, Rate: rate, Classes: HTBClasses, Leaf: leaf(features), Map: SpreadOver(HTBClasses),
	}}
	r.Buckets = bucketsFor(rate, r.Leaf)
	r.Lacks = append(r.Lacks,
		"two neighbouring priorities share a class",
		"every class keeps a tiny floor, even the one that should rest")
	r.Lacks = append(r.Lacks, r.uneven()...)
	return r, ""
}

// uneven says which flows of one class do not share it evenly: those that meet in
// one bfifo (see [MaxBuckets]).
func (q Queue) uneven() []string {
	const mend = "share it unevenly (fq_codel would mend that)"
	switch n := q.Leaves(); {
	case q.Leaf != LeafBFIFO:
		return nil
	case n == 1:
		return []string{"flows of a class " + mend}
	default:
		return []string{fmt.Sprintf("two flows of a class meet in one of its %d leaves 1 time in %d, and then %s", n, n, mend)}
	}
}

func climbFQ(l policy.Link, f LinkFacts, features Features) (Rung, string) {
	if !features.Qdiscs["fq"] {
		return Rung{}, "kernel has no fq qdisc"
	}
	if shaped(l, f) != 0 {
		return Rung{}, "fq can not hold a rate below the device's own"
	}
	if !features.Qdiscs["fq bands"] {
		return Rung{
			Queue: Queue{Scheduler: policy.FQ, Classes: 1, Map: SpreadOver(1)},
			Lacks: []string{"this kernel's fq has no bands: flows share the link, whatever their priority"},
		}, ""
	}
	const bands = 3
	return Rung{
		Queue: Queue{Scheduler: policy.FQ, Classes: bands, Map: SpreadOver(bands)},
		Lacks: []string{"fq's bands are weighted, not strict"},
	}, ""
}

func leaf(features Features) Leaf {
	if features.Qdiscs["fq_codel"] {
		return LeafFQCodel
	}
	return LeafBFIFO
}
