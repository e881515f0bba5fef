package bpf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-net/weir/internal/plan"
)

// fillBlocs gives the packets of contracts with a weight a budget in each limit of one
// link, or of all together (0), that they share with others. The limits have theirs.
func (g *Generation) fillBlocs(blocs map[plan.Owner]plan.Weight, index int) error {
	entries := map[limitMember]uint32{}
	for _, of := range slices.SortedFunc(maps.Keys(blocs), byMember) {
		if of.Link != index {
			continue
		}
		all, err := g.numbers()
		if err != nil {
			return err
		}
		limit := of.Limit()
		within := all.of[limit].number
		if within == none {
			return fmt.Errorf("make a bloc in limit %+v: there is no such limit", limit)
		}
		a := g.wanted[limit]
		a.weight, a.within = blocs[of], within
		n, err := g.setBudget(of, a)
		if err != nil {
			return err
		}
		entries[limitMember{Contract: uint16(of.Member), Budget: uint16(within)}] = uint32(n)
	}
	return fill(g.tables[limitMapBlocs], entries)
}

// byMember orders them, so that the same policy gives out the same numbers.
func byMember(a, b plan.Owner) int {
	return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Contract, b.Contract), cmp.Compare(a.Toward, b.Toward), cmp.Compare(flag(a.Packets), flag(b.Packets)))
}

// blocs reads back as how many flows the packets of contracts count in the limits that they
// share: nothing where no program charges it, and nothing of a bloc that is not as its
// limit is.
func (g *Generation) blocs() (map[plan.Owner]plan.Weight, error) {
	all, err := g.charged()
	if err != nil {
		return nil, err
	}
	entries, err := read[limitMember, uint32](g.tables[limitMapBlocs])
	if err != nil {
		return nil, err
	}
	var blocs map[plan.Owner]plan.Weight
	for m, n := range entries {
		of := all.owners[budgetNumber(n)]
		is, limit := all.of[of].limit, all.of[of.Limit()]
		weight := is.weight
		is.weight, is.within = 0, none
		if of.Member != plan.ContractID(m.Contract) || limit.number != budgetNumber(m.Budget) || is != limit.limit {
			continue
		}
		if blocs == nil {
			blocs = make(map[plan.Owner]plan.Weight, len(entries))
		}
		blocs[of] = weight
	}
	return blocs, nil
}

// addBlocs adds to the limits what became of the packets of their blocs: what passed has
// been charged to both.
func addBlocs(held map[plan.Owner]plan.Held) {
	for of, h := range held {
		limit, known := held[of.Limit()]
		if of.Member == 0 || !known {
			continue
		}
		limit.Dropped += h.Dropped
		limit.Marked += h.Marked
		limit.Streams = limit.Streams || h.Streams
		held[of.Limit()] = limit
	}
}
