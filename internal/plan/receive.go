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
	{policy.MethodHTB, climbWaiting, []string{
		"only TCP is told: of all else what is above is dropped",
		"who sends at the same time, or whose acknowledgements leave by no link of Ethernet or as another host's, is told by its window",
		"acknowledgements of all below a limit wait in one line",
		"of limits within limits the outermost alone is exact: those further in are told by windows",
	}},
	{policy.MethodPace, climbPace, []string{
		"neighbours can not be told: the narrowest window is too wide for them, and what is above is dropped",
	}},
}

// noLink is said of a policy without links.
const noLink = "no link is declared, on which what is answered could wait"

// ChooseReceive is [ChooseLimit] of what a workload receives, whose answers leave by some
// links.
func ChooseReceive(limit policy.Limit, links []policy.Link, divided map[string]string, f Facts) (LimitRung, string) {
	on := ground{f, divided}
	rung, why := climbLimits(receiveLadder, limit, links, on)
	switch {
	case limit.Method != policy.MethodAuto:
	case rung.Method == policy.MethodEDT:
		rung.keepOn(on.without(links))
	case rung.Method == policy.MethodHTB:
		rung.Without = on.withoutEthernet(links)
	}
	return rung, why
}

// climbWaiting asks for what holds what a workload receives in any case, for an htb that counts
// acknowledgements as what they stand for, and for links whose packets can go there and back: for all
// where the policy names it, and else for one.
func climbWaiting(limit policy.Limit, links []policy.Link, on ground) string {
	if why := climbPace(limit, links, on); why != "" {
		return why
	}
	without := on.withoutEthernet(links)
	switch {
	case limit.Burst != 0:
		return "htb lets no burst of " + limit.Burst.String() + " through"
	case limit.Max == 0:
		return "htb counts no packets"
	case on.Features.lacks(on.Features.Weighs, FeatureWeighs):
		return "kernel has no htb that counts packets as what they stand for (htb, and size tables)"
	case len(links) == 0:
		return noLink
	case len(without) == len(links), limit.Method != policy.MethodAuto && len(without) > 0:
		return without[slices.Min(slices.Collect(maps.Keys(without)))]
	}
	return ""
}

// withoutEthernet are the links whose acknowledgements can not wait elsewhere, and why in words.
func (on ground) withoutEthernet(links []policy.Link) map[string]string {
	all := map[string]string{}
	for _, l := range links {
		if !on.Links[l.Name].Ethernet {
			all[l.Name] = fmt.Sprintf("link %q: its packets have no Ethernet header, with which they could wait elsewhere", l.Name)
		}
	}
	return all
}

// crowd has those whose number there is no class for take the next rung.
func (r ReceiveRungs) crowd(numbers map[string]int) {
	for name, n := range numbers {
		if _, ours := r[name]; n < MaxShares || !ours {
			continue
		}
		rung := LimitRung{Method: policy.MethodPace, Lacks: receiveLadder[len(receiveLadder)-1].lacks}
		rung.Why = becauseOf(false, []string{fmt.Sprintf("answers of %d workloads wait already, and there is no room for more", MaxShares)})
		r[name] = rung
	}
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
		return noLink
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
		rung, _ := ChooseReceive(limit, p.Links, divided, f)
		if besideAuto(w) {
			rung = chooseBeside(limit, p.Links, f)
		}
		rung.Method = cmp.Or(rung.Method, policy.MethodPace)
		all[w.Name] = rung
	}
	return all
}

// besideLadder is receiveLadder of what takes links as they are.
var besideLadder = append([]limitStep{{policy.MethodEDT, func(policy.Limit, []policy.Link, ground) string {
	return "links do not keep times of departure, and weir set gives them no queue"
}, nil}}, receiveLadder[1:]...)

// chooseBeside is [ChooseReceive] of what takes links as they are, and those keep no answers.
func chooseBeside(limit policy.Limit, links []policy.Link, f Facts) LimitRung {
	on := ground{Facts: f}
	rung, _ := climbLimits(besideLadder, limit, links, on)
	if rung.Method == policy.MethodHTB {
		rung.Without = on.withoutEthernet(links)
	}
	return rung
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
		if rung.Method != policy.MethodEDT {
			continue
		}
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
