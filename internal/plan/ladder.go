package plan

import (
	"fmt"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A Rung is the queueing that a link gets and what it does not promise.
type Rung struct {
	Queue
	Why   string   // in words: why this rung and no better one
	Lacks []string // in words: what it does not promise; first, where it keeps no strict order, why
	Idle  bool     // nothing queues here as far as anybody knows, so nothing can be ordered
}

// A step of the ladder: whether a link can stand on it, and what it gets there.
type step struct {
	scheduler policy.Scheduler
	climb     func(policy.Link, LinkFacts, Features) (Rung, string)
}

// ladder is the strict-order ladder, the best rung first.
var ladder = []step{
	{policy.MQPrio, climbMQPrio},
	{policy.Prio, climbBands(policy.Prio)},
	{policy.ETS, climbBands(policy.ETS)},
	{policy.HTB, climbHTB},
	{policy.FQ, climbFQ},
}

// A Demand is what limits and shares of workloads ask of a link's queue beside the order.
type Demand struct {
	Shares []Share // what they are promised of the link, or held to by its classes
	Times  bool    // packets have to wait for their times of departure
}

// Choose returns the rung of a link: the one that the policy names, or the best
// that the kernel, the device and the link's rate allow. What stands in the way
// comes back as a reason in words.
func Choose(l policy.Link, d Demand, f LinkFacts, features Features) (Rung, string) {
	if l.Scheduler == policy.None {
		r := Rung{
			Queue: Queue{Scheduler: policy.None},
			Why:   "the policy leaves the device's own qdisc alone",
			Lacks: []string{"order is what " + rootOf(f) + " makes of the priorities"},
		}
		if l.Rate != 0 {
			r.Lacks = append(r.Lacks, "nothing holds the link to its rate")
		}
		return r, ""
	}
	var reasons []string
	for _, s := range ladder {
		if l.Scheduler != policy.Auto && l.Scheduler != s.scheduler {
			continue
		}
		rung, why := s.climb(l, f, features)
		if why == "" {
			why = rung.divide(d.Shares)
		}
		if why == "" && d.Times {
			why = rung.keepTimes()
		}
		if why == "" {
			rung.Why = because(l, reasons)
			return rung, ""
		}
		reasons = append(reasons, why)
	}
	return Rung{}, strings.Join(reasons, "; ")
}

// divide gives parts of the line to those who are promised them, or says in words why
// that can not be.
func (r *Rung) divide(shares []Share) string {
	switch all := sum(shares); {
	case countShares(shares) == 0:
		return ""
	case r.Scheduler != policy.HTB && all == 0:
		return string(r.Scheduler) + " holds nobody to a rate"
	case r.Scheduler != policy.HTB:
		return string(r.Scheduler) + " promises nobody a part of the line"
	case all > r.Rate:
		return fmt.Sprintf("htb can not be divided so: workloads are promised %s in all, and it has %s", all, r.Rate)
	case countShares(shares) > MaxShares:
		return fmt.Sprintf("htb can not be divided so: %d workloads are promised a part of it, and htb has %d for them", countShares(shares), MaxShares)
	}
	r.Shares = shares
	if sum(shares) > 0 {
		r.Lacks = append(r.Lacks, "shares come before every priority")
	}
	return ""
}

func rootOf(f LinkFacts) string {
	if f.Root.Kind == "" {
		return "the device"
	}
	return "the " + f.Root.Kind + " qdisc"
}

func because(l policy.Link, reasons []string) string {
	return becauseOf(l.Scheduler != policy.Auto, reasons)
}

// becauseOf says why a rung was taken: it was asked for, or better ones are not possible.
func becauseOf(asked bool, reasons []string) string {
	if asked {
		return "the policy asks for it"
	}
	if len(reasons) == 0 {
		return "the best there is"
	}
	return "the best here: " + strings.Join(reasons, "; ")
}
