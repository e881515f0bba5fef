package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A PrefixOf is a prefix to which a contract may send only so much. Of all that fit a
// packet's destination the longest counts.
type PrefixOf struct {
	Contract ContractID
	Prefix   netip.Prefix // without bits behind it
}

// A Toward is what goes to some prefixes of a contract together.
type Toward struct {
	Number uint16 // of these prefixes among the contract's, from 1 on
	Limit  Limit
}

// towardNumbers are the numbers of a policy's sets of prefixes, by workload and by the
// prefixes in words: those of the last apply stay, so that their limits go on, and no
// other gets one of these.
func (ids IDs) towardNumbers(p *policy.Policy) map[string]map[string]uint16 {
	all := map[string]map[string]uint16{}
	for _, w := range p.Workloads {
		if len(w.Contract.Egress.Toward) == 0 || w.Via != policy.ViaBPF {
			continue
		}
		known, numbers := ids.Toward[w.Name], map[string]uint16{}
		taken := map[uint16]bool{}
		for _, n := range known {
			taken[n] = true
		}
		next := uint16(1)
		for _, t := range w.Contract.Egress.Toward {
			n, ok := known[t.String()]
			for ; !ok; next++ {
				if !taken[next] {
					n, ok = next, true
				}
			}
			numbers[t.String()] = n
		}
		all[w.Name] = numbers
	}
	return all
}

// towardOf are the prefixes of all workloads, with what may go there.
func towardOf(p *policy.Policy, ids IDs) map[PrefixOf]Toward {
	all := map[PrefixOf]Toward{}
	for _, w := range p.Workloads {
		if w.Via != policy.ViaBPF {
			continue
		}
		for _, t := range w.Contract.Egress.Toward {
			for _, prefix := range t.Prefixes {
				all[PrefixOf{ids.Names[w.Name].ID, prefix}] = Toward{ids.Toward[w.Name][t.String()], limitTo(t.Limit)}
			}
		}
	}
	return all
}

// TowardOf is what each contract may send to prefixes, by the prefixes in words.
func (r Rules) TowardOf() map[ContractID]map[string]Toward {
	type together struct {
		contract ContractID
		Toward
	}
	prefixes := map[together][]netip.Prefix{}
	for of, t := range r.Toward {
		prefixes[together{of.Contract, t}] = append(prefixes[together{of.Contract, t}], of.Prefix)
	}
	all := map[ContractID]map[string]Toward{}
	for t, prefixes := range prefixes {
		if all[t.contract] == nil {
			all[t.contract] = map[string]Toward{}
		}
		all[t.contract][policy.FormatPrefixes(prefixes)] = t.Toward
	}
	return all
}

// TowardTerms puts into words what a contract may send to prefixes: "to 10.0.0.0/8 at most
// 1Gbit".
func (r Rules) TowardTerms(id ContractID) (terms []string) {
	all := r.TowardOf()[id]
	for _, to := range slices.Sorted(maps.Keys(all)) {
		terms = append(terms, to+" "+all[to].Limit.String())
	}
	return terms
}

// unlikeToward says how what goes to prefixes differs between two contracts, "" if it does
// not: "egress to 10.0.0.0/8 at most 1Gbit -> not limited".
func unlikeToward(have, want map[string]Toward) string {
	var changed []string
	for _, to := range union(have, want) {
		if text := have[to].Limit.unlike(want[to].Limit, PromiseEgress+" "+to); text != "" {
			changed = append(changed, text)
		}
	}
	return strings.Join(changed, ", ")
}

// countToward is how many limits of prefixes there are, one of bandwidth and of packets
// being two.
func (r Rules) countToward() (n int) {
	for _, all := range r.TowardOf() {
		for _, t := range all {
			n += len(t.Limit.Amounts())
		}
	}
	return n
}

// towardTerms puts into words what a policy's contract may send to prefixes.
func towardTerms(toward []policy.Toward) (terms []string) {
	for _, t := range toward {
		terms = append(terms, fmt.Sprintf("%s %s", t, asWritten(t.Limit)))
	}
	return terms
}
