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
	if why := noTimesOn(queues, f, "keeps no packet until its time of departure before the next weir apply"); why != "" {
		return policy.MethodAuto, lacks[0] + "; " + why
	}
	return policy.MethodEDT, ""
}

// NoAnswers says in words why no answer of a workload can wait beside a policy whose links have
// these queues, "" if all can.
func NoAnswers(queues map[string]Queue, f Features) string {
	if lacks := f.NoLimits(); len(lacks) > 0 {
		return lacks[0]
	}
	return noTimesOn(queues, f, "keeps no packet until its time of departure, where the policy has no limit by edt")
}

// noTimesOn says in words why not each of some queues keeps packets until their times of
// departure, "" if they do. unprepared is what is said of one that could.
func noTimesOn(queues map[string]Queue, f Features, unprepared string) string {
	why, might := f.noTimes(), ""
	if why == "" && len(queues) == 0 {
		why = "no link keeps packets until their times of departure"
	}
	for _, link := range slices.Sorted(maps.Keys(queues)) {
		switch q := queues[link]; {
		case q.Leaf == LeafFQ:
		case q.keepsNoTimes() != "":
			why = cmp.Or(why, fmt.Sprintf("link %q: %s", link, q.keepsNoTimes()))
		default:
			might = fmt.Sprintf("link %q %s", link, unprepared)
		}
	}
	return cmp.Or(why, might)
}

// prepareTimes puts an fq where packets of all links wait, for answers that wait beside the
// policy, and for limits that come between two applies where those can be held in no better way:
// where no link loses its rung by it.
func (w *Want) prepareTimes(explicit []Explicit, f Features) {
	answers := slices.ContainsFunc(explicit, func(e Explicit) bool { return ArrivingOf(e.Contract).Answers })
	if len(f.NoLimits()) == 0 && !answers || f.noTimes() != "" {
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
	whyNot := NoAnswers(queues, f)
	explicit = slices.Clone(explicit)
	for i := range explicit {
		name, limit, arriving := explicit[i].Name, &explicit[i].Contract.Egress.Limit, &explicit[i].Contract.Ingress.Limit
		switch {
		case *limit == policy.Limit{}:
		case why != "":
			*limit = policy.Limit{}
			w.unheld(name, PromiseEgress, why)
		default:
			limit.Method = w.Live
		}
		if arriving.Method == policy.MethodEDT && whyNot != "" {
			*arriving = policy.Limit{}
			w.unheld(name, PromiseIngress, whyNot)
		}
	}
	return explicit
}

// unheld notes that nothing holds a limit of an explicit contract, and why.
func (w *Want) unheld(name, promise, why string) {
	if w.Unheld[name] == nil {
		w.Unheld[name] = map[string]string{}
	}
	w.Unheld[name][promise] = why
}
