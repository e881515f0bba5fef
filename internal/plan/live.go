package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-net/weir/internal/policy"
)

// LiveMethod says how a limit is held that weir set or weir run gives beside a policy
// whose links have these queues: paced, or by departure times where each of them keeps
// packets until theirs. It is of all links together. What stands in the way comes back as
// a reason in words.
func LiveMethod(queues map[string]Queue, f Features) (policy.Method, string) {
	lacks := f.NoLimits()
	if len(lacks) == 0 {
		return policy.MethodPace, ""
	}
	why := f.noTimes()
	if why == "" && len(queues) == 0 {
		why = "no link keeps packets until their times of departure"
	}
	unprepared := ""
	for _, link := range slices.Sorted(maps.Keys(queues)) {
		switch q := queues[link]; {
		case q.Leaf == LeafFQ:
		case q.keepsNoTimes() != "":
			why = cmp.Or(why, fmt.Sprintf("link %q: %s", link, q.keepsNoTimes()))
		default:
			unprepared = fmt.Sprintf("link %q keeps no packet until its time of departure before the next weir apply", link)
		}
	}
	if why = cmp.Or(why, unprepared); why != "" {
		return policy.MethodAuto, lacks[0] + "; " + why
	}
	return policy.MethodEDT, ""
}

// prepareTimes puts an fq where packets of all links wait, for limits that come between two
// applies, where those can be held in no better way and no link loses its rung by it.
func (w *Want) prepareTimes(f Features) {
	if len(f.NoLimits()) == 0 || f.noTimes() != "" {
		return
	}
	prepared := make(map[string]Rung, len(w.Rungs))
	for link, rung := range w.Rungs {
		rung.Lacks = slices.Clone(rung.Lacks)
		if rung.keepTimes() != "" {
			return
		}
		prepared[link] = rung
	}
	w.Rungs = prepared
}

// liveLimits chooses how the limits of explicit contracts are held, and notes those that
// can not be.
func (w *Want) liveLimits(explicit []Explicit, f Features) []Explicit {
	queues := make(map[string]Queue, len(w.Rungs))
	for link, rung := range w.Rungs {
		queues[link] = rung.Queue
	}
	why := ""
	w.Live, why = LiveMethod(queues, f)
	explicit = slices.Clone(explicit)
	for i := range explicit {
		limit := &explicit[i].Contract.Egress.Limit
		switch {
		case *limit == policy.Limit{}:
		case why != "":
			*limit = policy.Limit{}
			w.Unheld[explicit[i].Name] = why
		default:
			limit.Method = w.Live
		}
	}
	return explicit
}
