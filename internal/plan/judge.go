package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// Measured is what was seen of the packets that promises are about.
type Measured struct {
	Traffic  map[string]map[ContractID]Traffic // link -> what passed under each contract
	Held     map[Owner]Held                    // what became of the packets below each limit
	Served   map[Owner]Served                  // what each share got
	Pools    map[ContractID]Pool               // what the sockets below each bound of memory hold
	Filtered map[Owner]Filtered                // what each filter or detour of links' own limits let through
}

// Judge holds every promise against what was read back and measured. differences is
// what Diff found between the two states.
func Judge(p *policy.Policy, want *Want, differences []Difference, m Measured) []Judgement {
	seen, held := m.Traffic, m.Held
	wrong := map[string]string{}
	for _, d := range differences {
		if wrong[d.Object] == "" {
			wrong[d.Object] = d.wrong()
		}
	}
	var all []Judgement
	toward := want.Rules.TowardOf()
	for _, w := range p.Workloads {
		if w.Via == policy.ViaNetPrio {
			all = append(all, judgeNetPrio(w, want, wrong)...)
			continue
		}
		id := want.Contracts[w.Name].ID
		for _, l := range p.Links {
			level := w.Contract.Priority.On(l.Name)
			if level == policy.Unset {
				continue
			}
			j := Judgement{Workload: w.Name, Link: l.Name, Promise: PromisePriority, Priority: level}
			j.Traffic = seen[l.Name][id]
			j.Verdict, j.Evidence = judge(want.Rungs[l.Name], want.Links[l.Name].Rules.Contracts[id], j.Traffic,
				wrong["link "+l.Name], wrong["workload "+w.Name])
			all = append(all, j)
		}
		for _, l := range p.Links {
			if n, ok := want.Links[l.Name].shareOf(id); ok {
				j := Judgement{Workload: w.Name, Link: l.Name, Promise: PromiseShare, Traffic: seen[l.Name][id]}
				link := want.Links[l.Name]
				owner := Owner{Contract: id, Link: link.Index}
				broken := cmp.Or(wrong["link "+l.Name], wrong["workload "+w.Name])
				if link.Queue.Shares[n].Min != 0 {
					all = append(all, j.share(link.Queue, n, owner, m.Served, broken))
				}
				if want.LimitRungs.classMax(p, w, l.Name) != 0 {
					all = append(all, want.boundedOne(j.classLimit(link.Queue, n, owner, m.Served, broken), true))
				}
			}
		}
		if limit, ok := want.Rules.Limits[id]; ok {
			j := Judgement{Workload: w.Name, Link: EveryLink, Promise: PromiseEgress}
			for _, l := range p.Links {
				j.Traffic.Packets += seen[l.Name][id].Packets
			}
			all = append(all, want.bounded(j.limits(limit, Owner{Contract: id}, held, wrongOf(p.Links, w.Name, wrong)), false)...)
		}
		unheld := func(promise string, max policy.Rate) {
			if why := want.Unheld[w.Name][promise]; why != "" {
				all = append(all, Judgement{Workload: w.Name, Link: EveryLink, Promise: promise, Max: max, Verdict: Broken, Evidence: "no way to hold it: " + why})
			}
		}
		unheld(PromiseEgress, w.Contract.Egress.Max)
		for _, to := range slices.Sorted(maps.Keys(toward[id])) {
			t := toward[id][to]
			j := Judgement{Workload: w.Name, Link: EveryLink, To: to, Promise: PromiseEgress}
			all = append(all, want.bounded(j.limits(t.Limit, Owner{Contract: id, Toward: t.Number}, held, wrongOf(p.Links, w.Name, wrong)), false)...)
		}
		for _, l := range p.Links {
			if limit := want.Links[l.Name].Rules.Contracts[id].Here; !limit.none() {
				j := Judgement{Workload: w.Name, Link: l.Name, Promise: PromiseEgress}
				j.Traffic.Packets = seen[l.Name][id].Packets
				owner := Owner{Contract: id, Link: want.Links[l.Name].Index}
				all = append(all, want.bounded(j.limits(limit, owner, held, cmp.Or(wrong["link "+l.Name], wrong["workload "+w.Name])), false)...)
			}
		}
		if limit, ok := want.Rules.Arriving[id]; ok {
			j := Judgement{Workload: w.Name, Link: EveryLink, Promise: PromiseIngress}
			all = append(all, want.bounded(j.limits(limit, Owner{Contract: id, Link: AtSockets}, held, wrongAt(socketsObject, w.Name, wrong)), false)...)
		}
		unheld(PromiseIngress, w.Contract.Ingress.Max)
		if bound, ok := want.Rules.Memory[id]; ok {
			pool, known := m.Pools[id]
			all = append(all, Judgement{Workload: w.Name}.memory(bound, pool, known, wrongAt(memoryObject, w.Name, wrong)))
		}
		if held, ok := want.Memcg[id]; ok {
			pool, known := m.Pools[id]
			all = append(all, Judgement{Workload: w.Name}.memory(held.Bound(), pool, known, wrong["workload "+w.Name]))
		}
		if vrf, ok := want.Bound[id]; ok {
			all = append(all, judgeBound(w.Name, vrf, want.Astray[w.Name], wrong))
		}
	}
	all = append(all, judgeVRFs(want, wrong)...)
	for _, l := range p.Links {
		all = append(all, judgeLink(l.Name, want.Links[l.Name], seen[l.Name], m, wrong["link "+l.Name])...)
	}
	return all
}

// judgeLink judges what all packets of a link may take.
func judgeLink(name string, l LinkState, seen map[ContractID]Traffic, m Measured, wrong string) (all []Judgement) {
	egress, ingress := Judgement{Link: name, Promise: PromiseEgress}, Judgement{Link: name, Promise: PromiseIngress}
	own := func(id ContractID) Owner { return Owner{Contract: id, Link: l.Index} }
	if limit := l.Rules.Egress; !limit.none() {
		for _, t := range seen {
			egress.Traffic.Packets += t.Packets
		}
		all = append(all, egress.limits(limit, own(OwnEgress), m.Held, wrong)...)
	}
	all = append(all, egress.policed(l.Policed.Egress, own(OwnEgress), m.Filtered, wrong)...)
	if limit := l.Rules.Ingress; !limit.none() {
		all = append(all, ingress.limits(limit, own(OwnIngress), m.Held, wrong)...)
	}
	all = append(all, ingress.policed(l.Policed.Ingress, own(OwnIngress), m.Filtered, wrong)...)
	return append(all, ingress.detoured(l.Detour, own(OwnIngress), m.Filtered, wrong)...)
}

// wrongOf says what breaks what holds on all links together, "" if nothing does.
func wrongOf(links []policy.Link, workload string, wrong map[string]string) string {
	for _, l := range links {
		if object := "link " + l.Name; wrong[object] != "" {
			return object + ": " + wrong[object]
		}
	}
	return wrong["workload "+workload]
}

// wrongAt says what breaks what an object does for the sockets of a workload, "" if nothing
// does.
func wrongAt(object, workload string, wrong map[string]string) string {
	if text := wrong[object]; text != "" {
		return object + ": " + text
	}
	return wrong["workload "+workload]
}

// limits judges a limit of bandwidth and of packets each by what passed below it, if that
// is known. j has their name, and the packets that came to them.
func (j Judgement) limits(limit Limit, owner Owner, held map[Owner]Held, wrong string) (all []Judgement) {
	for _, one := range limit.Amounts() {
		owner.Packets = one.PPS != 0
		all = append(all, j.limit(one, owner, held, wrong))
	}
	return all
}

// limit judges a limit of either.
func (j Judgement) limit(limit Limit, owner Owner, held map[Owner]Held, wrong string) Judgement {
	h, known := held[owner]
	j.Priority, j.Max, j.PPS = policy.Unset, limit.Max, limit.PPS
	j.Traffic = Traffic{Packets: j.Traffic.Packets - min(j.Traffic.Packets, h.Dropped), Bytes: h.Passed}
	if owner.Packets {
		j.Traffic = Traffic{Packets: h.Passed}
	}
	evidence := "read back: " + strings.TrimSpace(j.To+" "+limit.String())
	switch {
	case wrong != "":
		j.Verdict, j.Evidence = Broken, wrong
	case !known:
		j.Verdict, j.Evidence = Unprovable, evidence+"; what passed below it could not be read"
	case h.Last > limit.bound(h.Streams):
		j.Verdict, j.Evidence = Broken, evidence+"; "+h.words(owner.Packets)
	default:
		j.Verdict, j.Evidence = Kept, evidence+"; "+h.words(owner.Packets)
	}
	return j
}

// judgeNetPrio judges what the v1 controller carries. It writes the priority
// and counts nothing; who keeps the order is the queue of each device, which is
// known where it is one of the policy's.
func judgeNetPrio(w policy.Workload, want *Want, wrong map[string]string) []Judgement {
	group := wrong["net_prio group "+w.Name]
	var all []Judgement
	add := func(link string, level policy.Level, verdict Verdict, evidence string) {
		if group != "" {
			verdict, evidence = Broken, group
		}
		all = append(all, Judgement{Workload: w.Name, Link: link, Promise: PromisePriority, Priority: level, Verdict: verdict, Evidence: evidence})
	}
	const written = "read back: net_prio writes it to packets that have no priority yet"
	const elsewhere = written + "; the order is what the device's own qdisc makes of it"
	priority := w.Contract.Priority
	for _, link := range slices.Sorted(maps.Keys(want.Links)) {
		level, rung := priority.On(link), want.Rungs[link]
		switch broken := wrong["link "+link]; {
		case level == policy.Unset:
		case broken != "":
			add(link, level, Broken, broken)
		case !rung.ordered():
			add(link, level, Unprovable, written+"; "+rung.Lacks[0])
		default:
			add(link, level, Kept, written+", and "+rung.Queue.String()+" orders them")
		}
	}
	for _, link := range slices.Sorted(maps.Keys(priority.PerLink)) {
		if _, ours := want.Links[link]; !ours {
			add(link, priority.PerLink[link], Unprovable, elsewhere)
		}
	}
	if priority.Default != policy.Unset {
		add(EveryLink, priority.Default, Unprovable, elsewhere)
	}
	return all
}

// wrong says what breaks a promise. A change says what is; an addition says only
// what shall be.
func (d Difference) wrong() string {
	if d.Op == Add {
		return "it is not under contract"
	}
	return d.Detail
}

func judge(r Rung, promise Promise, t Traffic, linkWrong, workloadWrong string) (Verdict, string) {
	switch {
	case linkWrong != "":
		return Broken, linkWrong
	case workloadWrong != "":
		return Broken, workloadWrong
	}
	evidence := fmt.Sprintf("read back: %s of %s", r.Describe(promise.Priority), r.Queue)
	if t.Packets > 0 {
		evidence += fmt.Sprintf("; %d packets, %d bytes so far", t.Packets, t.Bytes)
	} else {
		evidence += "; no packet yet"
	}
	if !r.ordered() {
		return Unprovable, evidence + "; " + r.Lacks[0]
	}
	return Kept, evidence
}

// ordered reports whether the rung itself keeps strict order, so that placing a
// packet in its class is all that the promise needs.
func (r Rung) ordered() bool {
	switch r.Scheduler {
	case policy.None, policy.FQ:
		return false
	case policy.MQPrio:
		return r.Offload
	}
	return !r.Idle
}
