package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A Weight is as how many flows all flows of a workload count together in each limit
// that they share with others: 1 to [policy.MaxWeight]; 0: each counts as one.
type Weight = policy.Weight

// blocs are the limits of a policy, without those of classes, in which the packets of
// workloads with a weight count as so many flows: those of cgroups that may be further up,
// and those of links.
func (w *Want) blocs(charged *policy.Policy) map[Owner]Weight {
	blocs := map[Owner]Weight{}
	for _, member := range charged.Workloads {
		weight, id := member.Contract.Egress.Weight, w.Contracts[member.Name].ID
		if weight == 0 || member.Via != policy.ViaBPF {
			continue
		}
		join := func(of Owner, l Limit) {
			if l.Departs {
				return // a line knows no flows
			}
			of.Member = id
			for _, one := range l.Amounts() {
				of.Packets = one.PPS != 0
				blocs[of] = weight
			}
		}
		for _, l := range w.Links {
			join(Owner{Contract: OwnEgress, Link: l.Index}, l.Rules.Egress)
			join(Owner{Contract: OwnIngress, Link: l.Index}, l.Rules.Ingress)
		}
		for _, other := range charged.Workloads {
			if !mayLieBelow(member, other) {
				continue
			}
			of := Owner{Contract: w.Contracts[other.Name].ID}
			join(of, w.Rules.Limits[of.Contract])
			for _, l := range w.Links {
				join(Owner{Contract: of.Contract, Link: l.Index}, l.Rules.Contracts[of.Contract].Here)
			}
			for _, t := range w.Rules.TowardOf()[of.Contract] {
				join(Owner{Contract: of.Contract, Toward: t.Number}, t.Limit)
			}
		}
	}
	return blocs
}

// weights are what a contract counts as in limits that it shares, by the limits in words.
func (s State) weights(id ContractID) map[string]Weight {
	all := map[string]Weight{}
	for of, weight := range s.Rules.Blocs {
		if of.Member == id {
			all[s.shared(of.Limit())] = weight
		}
	}
	return all
}

// shared puts into words a limit that several share: "the limit of parent".
func (s State) shared(of Owner) string {
	text := "limit"
	if of.Packets {
		text = "packets"
	}
	link := fmt.Sprintf("device %d", of.Link)
	for name, l := range s.Links {
		if l.Index == of.Link {
			link = name
		}
	}
	switch of.Contract {
	case OwnEgress:
		return "the egress " + text + " of " + link
	case OwnIngress:
		return "the ingress " + text + " of " + link
	}
	name := fmt.Sprintf("contract %d", of.Contract)
	for known, c := range s.Contracts {
		if c.ID == of.Contract {
			name = known
		}
	}
	text = "the " + text + " of " + name
	if of.Link != 0 {
		text += " on " + link
	}
	for to, t := range s.Rules.TowardOf()[of.Contract] {
		if of.Toward != 0 && t.Number == of.Toward {
			text += " " + to
		}
	}
	return text
}

// weightTerms puts into words what a contract counts as in limits that it shares: "weight
// 3 in the limit of parent and the limit of eth0".
func (s State) weightTerms(id ContractID) []string {
	all := s.weights(id)
	if len(all) == 0 {
		return nil
	}
	limits := slices.Sorted(maps.Keys(all))
	return []string{all[limits[0]].String() + " in " + strings.Join(limits, " and ")}
}

// unlikeWeights says how what a contract counts as differs, "" if it does not: "weight 3 ->
// weight 5 in the limit of parent".
func unlikeWeights(have, want map[string]Weight) string {
	var changed []string
	for _, limit := range union(have, want) {
		if have[limit] != want[limit] {
			changed = append(changed, weightOrNone(have[limit])+" -> "+weightOrNone(want[limit])+" in "+limit)
		}
	}
	return strings.Join(changed, ", ")
}

func weightOrNone(w Weight) string {
	if w == 0 {
		return "no weight"
	}
	return w.String()
}

// flowless are the rungs of limits of workloads that know no flows, and so no weights.
var flowless = map[policy.Method]string{policy.MethodEDT: "times of departure hold", policy.MethodHTB: "a class of htb holds"}

// checkWeight asks for a limit that a workload with a weight may share, and that none of
// these is held by what knows no weights.
func checkWeight(p *policy.Policy, w policy.Workload, limits LimitRungs, f Facts, add addFunc) {
	egress := w.Contract.Egress
	if egress.Weight == 0 || w.Via != policy.ViaBPF {
		return
	}
	shares := false
	for _, l := range p.Links {
		own := ownLimits(l)
		for _, promise := range slices.Sorted(maps.Keys(own)) {
			shares = true
			if rung, why := ChooseOwn(promise, own[promise], f); why == "" && rung.Method != policy.MethodPace {
				add(egress.Span, "leave weight out, or have that limit paced",
					"workload %q: its weight counts for nothing in a limit of link %q: %s holds that, which knows no flows", w.Name, l.Name, rung.Method)
			}
		}
	}
	for _, other := range p.Workloads {
		if !other.Contract.Egress.Limited() || !mayLieBelow(w, other) {
			continue
		}
		shares = true
		for _, rung := range limits[other.Name] {
			if how := flowless[rung.Method]; how != "" {
				add(egress.Span, "leave weight out, or have that limit paced",
					"workload %q: its weight counts for nothing in a limit of workload %q: %s that", w.Name, other.Name, how)
				break
			}
		}
	}
	if !shares {
		add(egress.Span, "give a cgroup further up or a link a max, or leave weight out",
			"workload %q: its weight counts nowhere: it shares a limit with nobody", w.Name)
	}
}
