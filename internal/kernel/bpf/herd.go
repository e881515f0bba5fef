package bpf

import (
	"errors"
	"fmt"

	"github.com/weir-net/weir/internal/plan"
)

// Herd gives the packets of all contracts that go elsewhere the priority that to
// returns, until restore is called, so that what waits below them is let out.
// A process that is killed in between leaves a link that status calls broken and
// apply mends.
func (g *Generation) Herd(index int, to func(plan.ContractID) (priority uint32, goes bool)) (restore func() error, err error) {
	t, err := g.openLink(index)
	if err != nil {
		return nil, err
	}
	before, err := read[uint32, linkEgressContract](t.contracts)
	if err != nil {
		return nil, err
	}
	herded := make(map[uint32]linkEgressContract, len(before))
	for id, c := range before {
		priority, goes := to(plan.ContractID(id))
		if !goes || c.Serial == 0 && id >= uint32(plan.FirstID) {
			continue
		}
		c.Priority = priority
		herded[id] = c
	}
	restore = func() error {
		for id := range herded {
			herded[id] = before[id]
		}
		return fill(t.contracts, herded)
	}
	if err := fill(t.contracts, herded); err != nil {
		return nil, fmt.Errorf("herd packets of link %d: %w", index, errors.Join(err, restore()))
	}
	return restore, nil
}
