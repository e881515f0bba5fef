package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// ReceiveRungs are the rungs of the limits of what the sockets of workloads receive:
// workload -> rung.
type ReceiveRungs map[string]LimitRung

// receiveLadder is the ladder of limits of what workloads receive, the best rung first.
var receiveLadder = []limitStep{
	{policy.MethodEDT, climbAnswers, []string{
		"only TCP is told: of all else what is above is dropped",
		"TCP whose acknowledgements leave by no link that keeps them, or as another host's, is told by its window",
		"what it sends waits with what it acknowledges",
	}},
	{policy.MethodPace, climbPace, []string{
		"neighbours can not be told: the narrowest window is too wide for them, and what is above is dropped",
	}},
}

// ChooseReceive is [ChooseLimit] of what a workload receives, whose answers leave by some
// links.
func ChooseReceive(limit policy.Limit, links []policy.Link, divided map[string]string, f Facts) (LimitRung, string) {
	on := ground{f, divided}
	rung, why := climbLimits(receiveLadder, limit, links, on)
	if rung.Method == policy.MethodEDT && limit.Method == policy.MethodAuto {
		rung.keepOn(on.without(links))
	}
	return rung, why
}

// climbAnswers asks for what holds what a workload receives in any case, and for links that
// keep what it answers until its time: for all where the policy names it, and else for one that
// does not lose its rung by that.
func climbAnswers(limit policy.Limit, links []policy.Link, on ground) string {
	if why := climbPace(limit, links, on); why != "" {
		return why
	}
	if limit.Method != policy.MethodAuto {
		return climbTimes(limit, links, on)
	}
	if why := climbTimes(limit, nil, on); why != "" {
		return why
	}
	if len(links) == 0 {
		return "no link is declared, on which what is answered could wait"
	}
	if without := on.without(links); len(without) == len(links) {
		return without[links[0].Name]
	}
	return ""
}

// without are the links that keep no answers on the rung that they have for all else, and why in
// words.
func (on ground) without(links []policy.Link) map[string]string {
	all := map[string]string{}
	for _, l := range links {
		if why := on.keepsNoTimes(l); why != "" {
			all[l.Name] = why
			continue
		}
		rung, why := Choose(l, Demand{}, on.Links[l.Name], on.Features)
		if why = cmp.Or(why, rung.keepsNoTimes()); why != "" {
			all[l.Name] = fmt.Sprintf("link %q: %s", l.Name, why)
		}
	}
	return all
}

// keepOn has answers wait on all links but some.
func (r *LimitRung) keepOn(without map[string]string) {
	var reasons []string
	for _, link := range slices.Sorted(maps.Keys(without)) {
		reasons = append(reasons, without[link])
	}
	r.Why, r.Without = becauseOf(false, reasons), without
}

// HowReceived chooses the rung of each limit of what workloads receive. One that finds none is
// taken to ask nothing of links, so that none is to blame, too.
func HowReceived(p *policy.Policy, f Facts) ReceiveRungs {
	all, divided := ReceiveRungs{}, dividing(p)
	for _, w := range p.Workloads {
		limit := w.Contract.Ingress.Limit
		if limit == (policy.Limit{}) {
			continue
		}
		free := besideAuto(w)
		if free {
			limit.Method = policy.MethodPace
		}
		rung, _ := ChooseReceive(limit, p.Links, divided, f)
		if free {
			rung.Why = "the best here: links do not keep times of departure, and weir set gives them no queue"
		}
		rung.Method = cmp.Or(rung.Method, policy.MethodPace)
		all[w.Name] = rung
	}
	return all
}

// besideAuto reports whether a limit of what is received takes links as they are.
func besideAuto(w policy.Workload) bool {
	return w.Beside && w.Contract.Ingress.Method == policy.MethodAuto
}

// Follow tells them what queues the links have: those that take links as they are go to the rung of answers that wait,
// where one keeps them, and all others have them wait on what keeps them for somebody else, too.
func (r ReceiveRungs) Follow(p *policy.Policy, queues map[string]Queue, f Features) {
	keeps := func(link, _ string) bool { return queues[link].Leaf == LeafFQ }
	for name, rung := range r {
		without := maps.Clone(rung.Without)
		if maps.DeleteFunc(without, keeps); len(without) < len(rung.Without) {
			rung.keepOn(without)
			r[name] = rung
		}
	}
	if !f.someAnswers(queues) {
		return
	}
	rung := LimitRung{Method: policy.MethodEDT, Lacks: receiveLadder[0].lacks}
	rung.keepOn(timeless(queues, unprepared))
	for _, w := range p.Workloads {
		if _, limited := r[w.Name]; limited && besideAuto(w) {
			r[w.Name] = rung
		}
	}
}

// depart reports whether what workloads answer waits on a link.
func (r ReceiveRungs) depart(link string) bool {
	for _, rung := range r {
		if rung.Method == policy.MethodEDT && rung.Without[link] == "" {
			return true
		}
	}
	return false
}

// named is the policy in which each limit of what a workload receives names its rung.
func (r ReceiveRungs) named(p *policy.Policy) *policy.Policy {
	q := *p
	q.Workloads = slices.Clone(p.Workloads)
	for i := range q.Workloads {
		q.Workloads[i].Contract.Ingress.Method = r[q.Workloads[i].Name].Method
	}
	return &q
}

// Told is the rung of a workload's limit in words, none if there is none: "what sockets
// receive by pace: the best there is".
func (r ReceiveRungs) Told(workload string) []string {
	rung, ok := r[workload]
	if !ok {
		return nil
	}
	return []string{"what sockets receive " + rung.String()}
}

// why says how the limit of a workload is held, where that is not on the best rung.
func (r ReceiveRungs) why(workload string) string {
	if rung, ok := r[workload]; ok && rung.Why != becauseOf(false, nil) {
		return " (limit of " + strings.Join(r.Told(workload), "") + ")"
	}
	return ""
}
