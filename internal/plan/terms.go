package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// asWritten is a limit as the policy has it.
func asWritten(l policy.Limit) Limit {
	return Limit{Max: l.Max, Burst: l.Burst, PPS: l.PPS, Departs: l.Method == policy.MethodEDT}
}

// someClass is the class of a limit of what is received that names how it is held: which one, the
// policy does not say.
func someClass(by policy.Method) uint32 {
	if by == policy.MethodHTB {
		return 1
	}
	return 0
}

// Terms puts into words what a contract promises: "priority 3, at most 50Mbit,
// eth1 at most 10Mbit, ingress at most 20Mbit".
func Terms(of policy.Contract) string {
	var terms []string
	if !of.Priority.Empty() {
		terms = append(terms, "priority "+of.Priority.String())
	}
	for _, link := range slices.Sorted(maps.Keys(of.Egress.Min)) {
		terms = append(terms, link+" "+atLeast(of.Egress.Min[link]))
	}
	if l := asWritten(of.Egress.Limit); !l.none() {
		terms = append(terms, l.String())
	}
	terms = append(terms, towardTerms(of.Egress.Toward)...)
	for _, link := range slices.Sorted(maps.Keys(of.Egress.PerLink)) {
		terms = append(terms, link+" "+asWritten(of.Egress.PerLink[link]).String())
	}
	if of.Egress.Weight != 0 {
		terms = append(terms, of.Egress.Weight.String())
	}
	if l := asWritten(of.Ingress.Limit); !l.none() {
		l.Class = someClass(of.Ingress.Method)
		terms = append(terms, PromiseIngress+" "+l.String())
	}
	if m := MemoryTerms(of.TCPMemory); m != "" {
		terms = append(terms, m)
	}
	if of.VRF != "" {
		terms = append(terms, BoundTerms(of.VRF))
	}
	if terms == nil {
		return Limit{}.String()
	}
	return strings.Join(terms, ", ")
}

// limitTerms puts into words the limits of a contract: "egress at most 50Mbit", "eth1
// at most 10Mbit" of each link, and "ingress at most 20Mbit".
func (s State) limitTerms(id ContractID) (terms []string) {
	if l, ok := s.Rules.Limits[id]; ok {
		terms = append(terms, l.Promise())
	}
	for _, toward := range s.Rules.TowardTerms(id) {
		terms = append(terms, PromiseEgress+" "+toward)
	}
	for _, link := range slices.Sorted(maps.Keys(s.Links)) {
		if l := s.Links[link].Rules.Contracts[id].Here; !l.none() {
			terms = append(terms, link+" "+l.String())
		}
	}
	if l, ok := s.Rules.Arriving[id]; ok {
		terms = append(terms, PromiseIngress+" "+l.String())
	}
	if m := MemoryTerms(s.Rules.Memory[id]); m != "" {
		terms = append(terms, m)
	}
	if m := MemoryTerms(s.Memcg[id].bounded()); m != "" {
		terms = append(terms, m)
	}
	if vrf := s.Bound[id]; vrf != "" {
		terms = append(terms, BoundTerms(vrf))
	}
	return append(terms, s.weightTerms(id)...)
}

// limitsFrom puts into words what a contract holds those to that it binds from further
// up: "at most 50Mbit of all links together", "at most 10Mbit of eth1", and "at most
// 20Mbit of what sockets receive".
func (s State) limitsFrom(id ContractID) (terms []string) {
	if l, ok := s.Rules.Limits[id]; ok {
		terms = append(terms, l.String()+" of all links together")
	}
	terms = append(terms, s.Rules.TowardTerms(id)...)
	for _, link := range slices.Sorted(maps.Keys(s.Links)) {
		if l := s.Links[link].Rules.Contracts[id].Here; !l.none() {
			terms = append(terms, l.String()+" of "+link)
		}
	}
	if l, ok := s.Rules.Arriving[id]; ok {
		terms = append(terms, l.String()+" of what sockets receive")
	}
	if m := MemoryTerms(s.Rules.Memory[id]); m != "" {
		terms = append(terms, m)
	}
	return terms
}

// limited says whether a contract is charged on one link to its limits of all.
func limited(p Promise) string {
	switch {
	case p.Answers:
		p.Answers = false
		return limited(p) + ", answers wait"
	case p.Weighted:
		p.Weighted = false
		return limited(p) + ", with a weight"
	case p.Limited && p.Toward:
		return "limited, to prefixes too"
	case p.Limited:
		return "limited"
	case p.Toward:
		return "limited to prefixes"
	}
	return "not limited"
}
