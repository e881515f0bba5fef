package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-net/weir/internal/policy"
)

// A Live is how limits are held that weir set and weir run give beside a policy: of what is
// sent, by all links together, and of what is received. [policy.MethodAuto]: in no way.
type Live struct{ Sends, Receives policy.Method }

// LiveOn says how they are held where the links of the policy have these queues: what is sent
// is paced, or has departure times where each of them keeps packets until theirs; what is
// received waits for its answers on those that do, or else in a class of Weir's own. What stands in
// the way of the former comes back as a reason in words.
func LiveOn(queues map[string]Queue, f Facts) (Live, string) {
	lacks := f.Features.NoLimits()
	switch {
	case f.Features.someAnswers(queues):
		return Live{policy.MethodPace, policy.MethodEDT}, ""
	case len(lacks) == 0 && noClass(policy.MethodAuto, queues, f) == "":
		return Live{policy.MethodPace, policy.MethodHTB}, ""
	case len(lacks) == 0:
		return Live{policy.MethodPace, policy.MethodPace}, ""
	}
	if why := noTimesOn(queues, f.Features, "keeps no packet until its time of departure before the next weir apply"); why != "" {
		return Live{}, lacks[0] + "; " + why
	}
	return Live{Sends: policy.MethodEDT}, ""
}

// Held is a contract in which each limit names how it is held: the one of what is received may
// have done so itself.
func (l Live) Held(c policy.Contract) policy.Contract {
	c.Egress.Limit.Method = l.Sends
	c.Ingress.Method = cmp.Or(c.Ingress.Method, l.Receives)
	return c
}

// ByClass reports whether a contract's limit of what is received is held by a class in which answers
// wait.
func (l Live) ByClass(c policy.Contract) bool {
	c = l.Held(c)
	return c.Ingress.Max != 0 && c.Ingress.Method == policy.MethodHTB
}

// unprepared is what is said of a link that could keep answers, and has nothing to.
const unprepared = "keeps no packet until its time of departure, where the policy has no limit by edt"

// NoAnswers says in words why not all answers of a workload can wait, by a method that it names, beside a
// policy whose links have these queues; "" if they can.
func NoAnswers(by policy.Method, queues map[string]Queue, f Facts) string {
	if lacks := f.Features.NoLimits(); len(lacks) > 0 {
		return lacks[0]
	}
	switch by {
	case policy.MethodEDT:
		return noTimesOn(queues, f.Features, unprepared)
	case policy.MethodHTB:
		return noClass(by, queues, f)
	}
	return ""
}

// noClass says in words why answers can not wait in a class of Weir's own, "" if they can: of all links
// where that is named, and of one at least where it is left to Weir.
func noClass(by policy.Method, queues map[string]Queue, f Facts) string {
	var links []policy.Link
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		links = append(links, policy.Link{Name: name})
	}
	return climbWaiting(policy.Limit{Max: policy.MinRate, Method: by}, links, ground{Facts: f})
}

// someAnswers reports whether a queue among those of a policy's links keeps answers until their times.
func (f Features) someAnswers(queues map[string]Queue) bool {
	return len(f.NoLimits()) == 0 && f.noTimes() == "" && len(timeless(queues, unprepared)) < len(queues)
}

// noTimesOn says in words why not each of some queues keeps packets until their times of
// departure, "" if they do. might is what is said of one that could.
func noTimesOn(queues map[string]Queue, f Features, might string) string {
	why := f.noTimes()
	if why == "" && len(queues) == 0 {
		why = "no link keeps packets until their times of departure"
	}
	without := timeless(queues, might)
	names := slices.Sorted(maps.Keys(without))
	hopeless := func(link string) bool { return queues[link].keepsNoTimes() != "" }
	if i := slices.IndexFunc(names, hopeless); i > 0 {
		names = names[i:]
	}
	if len(names) > 0 {
		why = cmp.Or(why, without[names[0]])
	}
	return why
}

// timeless are the links whose queues keep no packets until their times of departure, and why in
// words; might is what is said of one that could.
func timeless(queues map[string]Queue, might string) map[string]string {
	all := map[string]string{}
	for link, q := range queues {
		switch why := q.keepsNoTimes(); {
		case q.Leaf == LeafFQ:
		case why != "":
			all[link] = fmt.Sprintf("link %q: %s", link, why)
		default:
			all[link] = fmt.Sprintf("link %q %s", link, might)
		}
	}
	return all
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

// liveLimits chooses how the limits are held that were given beside the policy's own, and notes those of
// explicit contracts that can not be.
func (w *Want) liveLimits(p *policy.Policy, explicit []Explicit, f Facts) []Explicit {
	queues := make(map[string]Queue, len(w.Rungs))
	for link, rung := range w.Rungs {
		queues[link] = rung.Queue
	}
	why := ""
	w.Live, why = LiveOn(queues, f)
	w.Received.Follow(p, queues, f.Features)
	explicit = slices.Clone(explicit)
	for i := range explicit {
		name, of := explicit[i].Name, &explicit[i].Contract
		if of.Egress.Max != 0 && why != "" {
			of.Egress.Limit = policy.Limit{}
			w.unheld(name, PromiseEgress, why)
		}
		if by := of.Ingress.Method; by == policy.MethodEDT || by == policy.MethodHTB {
			if why := NoAnswers(by, queues, f); why != "" {
				of.Ingress.Limit = policy.Limit{}
				w.unheld(name, PromiseIngress, why)
			}
		}
		*of = w.Live.Held(*of)
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
