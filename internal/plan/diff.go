package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// Diff returns what leads from have to want, in a fixed order: VRFs, links, the
// default, workloads, sockets, net_prio groups, each by name. No difference means that
// the kernel holds exactly what the policy asks for.
func Diff(have State, want *Want) []Difference {
	var d differences
	d.vrfs(have.VRFs, want.VRFs)
	var links []bothLinks
	for _, name := range union(have.Links, want.Links) {
		d.link(name, have, want)
		h, isThere := have.Links[name]
		if w, ok := want.Links[name]; ok && isThere {
			links = append(links, bothLinks{name, h, w, h.Queue.Equal(w.Queue)})
		}
	}
	d.contract("default", links, Unclaimed, Unclaimed)
	isToward, shallToward := have.Rules.TowardOf(), want.Rules.TowardOf()
	rules := compareRules(have.Rules, want.Rules)
	for _, name := range union(have.Contracts, want.Contracts) {
		was, isThere := have.Contracts[name]
		shall, wanted := want.Contracts[name]
		switch {
		case !wanted:
			d.add(Remove, "workload "+name, "its packets are nobody's again")
		case !isThere:
			d.add(Add, "workload "+name, "%s%s: %s", promises(shall.ID, want.State), want.LimitRungs.why(name)+want.Received.why(name), want.label(name))
		default:
			if text := rules.of(was.ID, shall.ID); text != "" {
				d.add(Change, "workload "+name, "%s", text)
			}
			d.contract("workload "+name, links, was.ID, shall.ID,
				have.Rules.Limits[was.ID].unlike(want.Rules.Limits[shall.ID], PromiseEgress),
				unlikeToward(isToward[was.ID], shallToward[shall.ID]),
				have.Rules.Arriving[was.ID].unlike(want.Rules.Arriving[shall.ID], PromiseIngress),
				unlikeWeights(have.weights(was.ID), want.weights(shall.ID)),
				unlikeMemory(have.Rules.Memory[was.ID], want.Rules.Memory[shall.ID]),
				unlikeMemcg(have.Memcg[was.ID], want.Memcg[shall.ID]),
				unlikeBound(have.Bound[was.ID], want.Bound[shall.ID]))
		}
	}
	d.strays(have, want, rules)
	d.sockets(have, want)
	if waiting := have.Waiting.unlike(want.Waiting); waiting != "" {
		d.add(Change, socketsObject, "%s", waiting)
	}
	d.memory(have, want)
	d.running(boundObject, have.Binds, want.Binds, len(have.Bound) > 0,
		"the program that binds them to their VRF does not run", "one binds them, where no workload has a VRF")
	for _, name := range union(have.Groups, want.Groups) {
		d.group(name, have.Groups, want.Groups)
	}
	return d
}

// of says what a workload gains and loses under its number, or its two numbers.
func (t tallies) of(was, shall ContractID) string {
	if was == shall {
		return t[was].String()
	}
	return strings.Trim(t[was].String()+"; "+t[shall].String(), "; ")
}

// strays reports rules that lead to contracts which nobody has, limits of such
// contracts, and shapes of flows that are tried in another order.
func (d *differences) strays(have State, want *Want, rules tallies) {
	known := map[ContractID]bool{}
	for _, c := range have.Contracts {
		known[c.ID] = true
	}
	for _, c := range want.Contracts {
		known[c.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		if !known[id] {
			d.add(Change, fmt.Sprintf("contract %d", id), "is nobody's: %s", rules[id])
		}
	}
	for _, id := range have.limitedBut(known) {
		d.add(Change, fmt.Sprintf("contract %d", id), "is nobody's: %s", strings.Join(have.limitTerms(id), ", "))
	}
	if len(rules) == 0 && !slices.Equal(have.Rules.Tuples, want.Rules.Tuples) {
		d.add(Change, "flows", "in another order")
	}
}

// socketsObject is what holds sockets to what they may receive.
const socketsObject = "sockets"

// sockets compares what runs where packets are handed to sockets.
func (d *differences) sockets(have State, want *Want) {
	d.running(socketsObject, have.Receives, want.Receives, len(have.Rules.Arriving) > 0,
		"their program at ingress does not run", "a program of theirs runs at ingress, where nothing is limited")
}

// memoryObject is what bounds the memory of sockets.
const memoryObject = "tcp memory"

// memory compares what runs to bound the memory of sockets.
func (d *differences) memory(have State, want *Want) {
	d.running(memoryObject, have.Holds, want.Holds, len(have.Rules.Memory) > 0,
		"its programs do not run", "programs of its own run, where nothing has a bound")
}

// running compares whether programs run with whether they shall. Where that fits what is
// there for them to do, the workloads tell of what is to come or to go.
func (d *differences) running(object string, runs, shall, needed bool, lacks, tooMany string) {
	switch {
	case runs == needed || runs == shall:
	case shall:
		d.add(Change, object, "%s", lacks)
	default:
		d.add(Change, object, "%s", tooMany)
	}
}

type differences []Difference

func (d *differences) add(op Op, object, format string, args ...any) {
	*d = append(*d, Difference{op, object, fmt.Sprintf(format, args...)})
}

// bothLinks is a link that is there and wanted.
type bothLinks struct {
	name       string
	have, want LinkState
	sameQueue  bool
}

// contract compares what one contract means on each link. beyond says how else it differs:
// in limits of all links, of what it sends to prefixes or its sockets receive, in what it
// counts in limits of others and in what its sockets may hold; "" where it does not.
func (d *differences) contract(object string, links []bothLinks, was, shall ContractID, beyond ...string) {
	beyond = slices.DeleteFunc(beyond, func(s string) bool { return s == "" })
	var changed []string
	for i := range links {
		l := &links[i]
		a, b := l.have.Rules.promise(was), l.want.Rules.promise(shall)
		switch {
		case l.sameQueue && a == b:
		case !samePromise(l.have.Queue, l.want.Queue, a.Priority, b.Priority):
			changed = append(changed, fmt.Sprintf("%s %s -> %s", l.name, l.have.Queue.Describe(a.Priority), l.want.Queue.Describe(b.Priority)))
		case a.Serial != b.Serial:
			changed = append(changed, fmt.Sprintf("%s serial %d -> %d", l.name, a.Serial, b.Serial))
		case limited(a) != limited(b) && len(beyond) == 0:
			changed = append(changed, fmt.Sprintf("%s %s -> %s", l.name, limited(a), limited(b)))
		}
		if here := a.Here.unlike(b.Here, l.name); here != "" {
			changed = append(changed, here)
		}
	}
	changed = append(changed, beyond...)
	if len(changed) > 0 {
		d.add(Change, object, "%s", strings.Join(changed, ", "))
	}
}

// promise is what a contract means; one that is not there keeps the priority.
func (r LinkRules) promise(id ContractID) Promise {
	if p, ok := r.Contracts[id]; ok {
		return p
	}
	return Promise{Priority: Keep}
}

// samePromise reports whether two written priorities stand for one level, each
// on its own queue: another scheduler alone is no change of every workload, and
// neither is a queue that somebody took from below the programs.
func samePromise(have, want Queue, a, b uint32) bool {
	n, was := have.ShareOf(a)
	m, shall := want.ShareOf(b)
	switch {
	case was && shall:
		return n == m && have.Shares[n] == want.Shares[m]
	case a == b:
		return true
	}
	for level := range policy.Level(policy.Levels) {
		if have.Written(level) == a && want.Written(level) == b {
			return true
		}
	}
	return false
}

// promises says what a contract means on each link, on all together, and to its
// sockets.
func promises(id ContractID, s State) string {
	var texts []string
	for _, link := range slices.Sorted(maps.Keys(s.Links)) {
		l := s.Links[link]
		if p, ok := l.Rules.Contracts[id]; ok && p.Priority != Keep {
			texts = append(texts, link+" "+l.Queue.Describe(p.Priority))
		}
	}
	if texts = append(texts, s.limitTerms(id)...); len(texts) == 0 {
		return "priority as it comes"
	}
	return strings.Join(texts, ", ")
}

func (d *differences) group(name string, have, want map[string]Group) {
	object := "net_prio group " + name
	h, isThere := have[name]
	w, wanted := want[name]
	switch {
	case !wanted:
		d.add(Remove, object, "its processes go back where they were")
	case !isThere:
		d.add(Add, object, "priority %s", policy.Priority{Default: w.Default, PerLink: w.PerLink})
	case h.Default != w.Default || !maps.Equal(h.PerLink, w.PerLink):
		d.add(Change, object, "priority %s -> %s",
			policy.Priority{Default: h.Default, PerLink: h.PerLink}, policy.Priority{Default: w.Default, PerLink: w.PerLink})
	}
}

// union returns the keys of both maps in order.
func union[V, W any](a map[string]V, b map[string]W) []string {
	all := make([]string, 0, max(len(a), len(b)))
	for k := range a {
		all = append(all, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return all
}
