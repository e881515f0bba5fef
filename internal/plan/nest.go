package plan

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// What holds for a packet: the limits of its own contract, of so many workloads
// that claim cgroups further up, and of its link; and so many of these.
const (
	maxAbove  = 3
	maxLimits = 5
)

// A lineage is whose contracts a socket is below, each once: its own, which decides
// the priority, and then those that claim a cgroup further up, the nearest first.
type lineage []ContractID

// join adds the next contract on the way up. It reports whether the limits of that
// one bind the socket beside its own.
func (l *lineage) join(id ContractID) (above bool) {
	if slices.Contains(*l, id) {
		return false
	}
	*l = append(*l, id)
	return len(*l) > 1 && len(*l) <= 1+maxAbove
}

// A holding is a cgroup that is claimed for itself.
type holding struct {
	workload *policy.Workload
	at       policy.Span // of the selector
}

// checkNesting reports cgroups of this host in which more limits meet than can hold.
// Those with the same workloads above them share a finding.
func (w *Want) checkNesting(p *policy.Policy, f Facts) (errs []policy.Diagnostic) {
	held := w.holdings(p, f)
	workloads := map[ContractID]*policy.Workload{}
	told := map[string]bool{}
	for _, at := range slices.Sorted(maps.Keys(held)) {
		var l lineage
		for up, last := at, ""; up != last; up, last = path.Dir(up), up {
			if h, ok := held[up]; ok {
				id := w.Contracts[h.workload.Name].ID
				workloads[id] = h.workload
				l.join(id)
			}
		}
		if key := fmt.Sprint(l); !told[key] {
			told[key] = true
			way := make([]*policy.Workload, len(l))
			for i, id := range l {
				way[i] = workloads[id]
			}
			errs = append(errs, crowded(p.Links, at, held[at].at, way)...)
		}
	}
	return errs
}

// holdings are the v2 cgroups that are claimed for themselves, by path; none where
// no workload has a limit.
func (w *Want) holdings(p *policy.Policy, f Facts) map[string]holding {
	held := map[string]holding{}
	if !slices.ContainsFunc(p.Workloads, func(wl policy.Workload) bool { return !wl.Contract.Egress.Empty() }) {
		return held
	}
	for i := range p.Workloads {
		wl := &p.Workloads[i]
		c, ok := w.Contracts[wl.Name]
		for _, s := range wl.Match {
			if !ok || s.Cgroup.Controller != "" {
				continue
			}
			for _, m := range f.Cgroups[s.Cgroup] { // of cgroups and units only
				if _, twice := held[m.Path]; !twice && w.Rules.Cgroups[m.ID] == c.ID {
					held[m.Path] = holding{wl, s.Span}
				}
			}
		}
	}
	return held
}

// crowded says of one cgroup which limits meet there, if they are too many. way is
// whose contracts its sockets are below.
func crowded(links []policy.Link, cgroup string, at policy.Span, way []*policy.Workload) (errs []policy.Diagnostic) {
	add := func(help, format string, args ...any) {
		errs = append(errs, policy.Diagnostic{Span: at, Message: "cgroup " + cgroup + ": " + fmt.Sprintf(format, args...), Help: help})
	}
	near := way[:min(len(way), 1+maxAbove)]
	for _, link := range links {
		n, whose := 0, []string{}
		for _, w := range near {
			if limits := limitsOn(w.Contract.Egress, link.Name); len(limits) > 0 {
				n += len(limits)
				whose = append(whose, fmt.Sprintf("workload %q (%s)", w.Name, strings.Join(limits, ", ")))
			}
		}
		if max := link.Egress.Max; max != 0 {
			n++
			whose = append(whose, "the link ("+Limit{max}.String()+")")
		}
		if n > maxLimits {
			add("leave one of them out, or match fewer of the cgroups on this path",
				"a packet on link %q would be below %d limits, and at most %d can hold: %s", link.Name, n, maxLimits, strings.Join(whose, ", "))
			break // the same workloads on the next link
		}
	}
	for _, w := range way[len(near):] {
		if !w.Contract.Egress.Empty() {
			add("match fewer of the cgroups between, or move the limit to a nearer one",
				"the limit of workload %q can not hold there: more than %d other workloads claim the cgroups between", w.Name, maxAbove)
		}
	}
	return errs
}
