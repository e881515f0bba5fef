package plan

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// maxAbove is how many workloads bind a socket beside its own: the nearest that claim
// a cgroup on its way up.
const maxAbove = 3

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

// An Unbound is a limit that does not bind all that is below its cgroup: more
// workloads claim nearer ones than limits nest, or it is held by a class, which is of
// one workload.
type Unbound struct {
	Workload string // whose limit it is
	Tagged   bool   // it binds all but what has a tag, whose own contract takes a place
	Class    bool   // it is one that a class of htb holds
	policy.Diagnostic
}

// unbound returns the limits that do not bind all that is below their cgroups of
// this host, in order of position. What a tag has beside them is reckoned with:
// anybody may be given one. charged is the policy without the limits of classes.
func (w *Want) unbound(p, charged *policy.Policy, f Facts) []Unbound {
	held := w.holdings(p, f)
	limited := map[string]bool{}
	for _, wl := range charged.Workloads {
		limited[wl.Name] = wl.Contract.Limited()
	}
	workloads := map[ContractID]*policy.Workload{}
	found := map[ContractID]*farCgroups{}
	for _, at := range slices.Sorted(maps.Keys(held)) {
		var l lineage
		for up, last := at, ""; up != last; up, last = path.Dir(up), up {
			if h, ok := held[up]; ok {
				id := w.Contracts[h.workload.Name].ID
				workloads[id] = h.workload
				l.join(id)
			}
		}
		for nearer, id := range l {
			if nearer < maxAbove || !limited[workloads[id].Name] {
				continue
			}
			if found[id] == nil {
				found[id] = &farCgroups{}
			}
			found[id].add(at, nearer)
		}
	}
	all := w.outsideClasses(held)
	for id, c := range found {
		all = append(all, c.unbound(workloads[id], held[c.first].at))
	}
	slices.SortFunc(all, func(a, b Unbound) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Workload, b.Workload))
	})
	return all
}

// farCgroups are the cgroups that are too far below a limit: those in which it binds
// nobody, or, without any, those in which it does not bind who has a tag.
type farCgroups struct {
	first  string // by path
	nearer int    // other workloads, in the first one
	more   int    // cgroups
}

func (c *farCgroups) add(at string, nearer int) {
	switch tagged := nearer == maxAbove; {
	case c.first == "" || c.tagged() && !tagged:
		*c = farCgroups{first: at, nearer: nearer}
	case c.tagged() == tagged:
		c.more++
	}
}

func (c *farCgroups) tagged() bool { return c.nearer == maxAbove }

// unbound says it of a workload's limit. at is where the first cgroup is claimed;
// what was set beside the policy has no place in it.
func (c *farCgroups) unbound(of *policy.Workload, at policy.Span) Unbound {
	u := Unbound{Workload: of.Name, Tagged: c.tagged()}
	u.Span = at
	if at == (policy.Span{}) {
		u.Span = cmp.Or(of.Contract.Egress.Span, of.Contract.Ingress.Span)
	}
	where, whom := "cgroup "+c.first, ""
	if c.more > 0 {
		where += fmt.Sprintf(" and %d more", c.more)
	}
	if u.Tagged {
		whom = " for what has a tag (pid, weir set, weir run)"
	}
	u.Message = fmt.Sprintf("%s: the limit of workload %q does not hold there%s: limits nest %d deep, and %d other workloads claim nearer cgroups",
		where, of.Name, whom, maxAbove, c.nearer)
	u.Help = "match fewer of the cgroups between, or move the limit to a nearer one"
	return u
}

// bounded are the judgements of a limit, and what its workload's limits do not bind; class
// says that a class of htb holds it.
func (w *Want) bounded(all []Judgement, class bool) []Judgement {
	for i := range all {
		all[i] = w.boundedOne(all[i], class)
	}
	return all
}

func (w *Want) boundedOne(j Judgement, class bool) Judgement {
	i := slices.IndexFunc(w.Unbound, func(u Unbound) bool { return u.Workload == j.Workload && u.Class == class })
	switch {
	case i < 0 || j.Verdict == Broken:
	case w.Unbound[i].Tagged:
		j.Verdict, j.Evidence = Unprovable, j.Evidence+"; "+w.Unbound[i].Message
	default:
		j.Verdict, j.Evidence = Broken, w.Unbound[i].Message
	}
	return j
}

// holdings are the v2 cgroups that are claimed for themselves, by path; none where
// no workload has a limit.
func (w *Want) holdings(p *policy.Policy, f Facts) map[string]holding {
	held := map[string]holding{}
	if !slices.ContainsFunc(p.Workloads, func(wl policy.Workload) bool { return wl.Contract.Limited() }) {
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
