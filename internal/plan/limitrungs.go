package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// LimitRungs are the rungs of the limits of what workloads send: workload -> the
// link, or EveryLink, -> rung.
type LimitRungs map[string]map[string]LimitRung

// A sendLimit is a limit of what a workload sends, as the policy has it.
type sendLimit struct {
	policy.Limit
	link string        // or EveryLink
	on   []policy.Link // those that it is of
}

// sendLimits are the limits of what a workload sends: of all links, and of single ones by
// name.
func sendLimits(p *policy.Policy, e policy.Egress) (all []sendLimit) {
	if e.Limit != (policy.Limit{}) {
		all = append(all, sendLimit{e.Limit, EveryLink, p.Links})
	}
	for _, name := range slices.Sorted(maps.Keys(e.PerLink)) {
		i := slices.IndexFunc(p.Links, func(l policy.Link) bool { return l.Name == name })
		if i >= 0 {
			all = append(all, sendLimit{e.PerLink[name], name, p.Links[i : i+1]})
		}
	}
	return all
}

// HowLimited chooses the rung of each limit of what workloads send. One that finds none
// is taken to be on the one that the policy names, or the best.
func HowLimited(p *policy.Policy, f Facts) LimitRungs {
	all, divided := LimitRungs{}, dividing(p)
	for _, w := range p.Workloads {
		for _, l := range sendLimits(p, w.Contract.Egress) {
			rung, why := ChooseLimit(l.Limit, l.on, divided, f)
			if why != "" {
				rung.Method = cmp.Or(l.Method, policy.MethodPace)
			}
			if why != "" && rung.Method == policy.MethodEDT {
				rung.Method = policy.MethodPace // so that no link is to blame, too
			}
			if all[w.Name] == nil {
				all[w.Name] = map[string]LimitRung{}
			}
			all[w.Name][l.link] = rung
		}
	}
	return all
}

// classMax is what a workload may take of a link in a class of its own; 0 where no
// class holds it.
func (r LimitRungs) classMax(p *policy.Policy, w policy.Workload, link string) (least policy.Rate) {
	for _, l := range sendLimits(p, w.Contract.Egress) {
		here := l.link == link || l.link == EveryLink && len(p.Links) == 1 && p.Links[0].Name == link
		if here && r[w.Name][l.link].Method == policy.MethodHTB && (least == 0 || l.Max < least) {
			least = l.Max
		}
	}
	return least
}

// outsideClasses is the policy without the limits that classes of htb hold, in which each
// that is left names the rung that holds it.
func (r LimitRungs) outsideClasses(p *policy.Policy) *policy.Policy {
	q := *p
	q.Workloads = slices.Clone(p.Workloads)
	for i := range q.Workloads {
		w := &q.Workloads[i]
		if len(r[w.Name]) == 0 {
			continue
		}
		egress := &w.Contract.Egress
		egress.PerLink = maps.Clone(egress.PerLink)
		for link, rung := range r[w.Name] {
			limit := egress.Limit
			if link != EveryLink {
				limit = egress.PerLink[link]
			}
			limit.Method = rung.Method
			if rung.Method == policy.MethodHTB {
				limit = policy.Limit{}
			}
			switch {
			case link == EveryLink:
				egress.Limit = limit
			case limit == (policy.Limit{}):
				delete(egress.PerLink, link)
			default:
				egress.PerLink[link] = limit
			}
		}
	}
	return &q
}

// Told are the rungs of a workload's limits in words, those of one rung together: "eth0
// and all links together by pace: the best there is".
func (r LimitRungs) Told(workload string) (lines []string) {
	links := map[string][]string{}
	for _, link := range slices.Sorted(maps.Keys(r[workload])) {
		text := r[workload][link].String()
		switch {
		case link == EveryLink && r[workload][link].Method == policy.MethodHTB:
			link = "the only link"
		case link == EveryLink:
			link = "all links together"
		}
		links[text] = append(links[text], link)
	}
	for _, text := range slices.Sorted(maps.Keys(links)) {
		lines = append(lines, strings.Join(links[text], " and ")+" "+text)
	}
	return lines
}

// why says how the limits of a workload are held, where any is not on the best rung.
func (r LimitRungs) why(workload string) string {
	for _, rung := range r[workload] {
		if rung.Method != policy.MethodPace || rung.Why != becauseOf(false, nil) {
			return " (limit of " + strings.Join(r.Told(workload), "; ") + ")"
		}
	}
	return ""
}
