package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/weir-net/weir/internal/plan"
)

// fillPromises writes what every contract means; those that nobody has keep the
// priority of whatever packet might name them.
func fillPromises(m *ebpf.Map, promises map[plan.ContractID]plan.Promise) error {
	keys, values := make([]uint32, m.MaxEntries()), make([]linkEgressContract, m.MaxEntries())
	for i := range keys {
		keys[i] = uint32(i)
		values[i] = linkEgressContract{Priority: plan.Keep}
	}
	for id, p := range promises {
		values[id] = contract(p)
	}
	return fillSlices(m, keys, values)
}

func contract(p plan.Promise) linkEgressContract {
	c := linkEgressContract{Priority: p.Priority, Serial: p.Serial}
	if p.Limited {
		c.Limited = 1
	}
	return c
}

// Promises reads back what the contracts mean on a link. Contracts that keep the
// priority and have no serial are those that nobody has.
func (g *Generation) Promises(index int) (map[plan.ContractID]plan.Promise, error) {
	t, err := g.openLink(index)
	if err != nil {
		return nil, err
	}
	all, err := read[uint32, linkEgressContract](t.contracts)
	if err != nil {
		return nil, err
	}
	promises := map[plan.ContractID]plan.Promise{}
	for id, c := range all {
		if id >= uint32(plan.FirstID) && c.Serial == 0 && c.Priority == plan.Keep {
			continue
		}
		promises[plan.ContractID(id)] = plan.Promise{Priority: c.Priority, Serial: c.Serial, Limited: c.Limited != 0}
	}
	return promises, nil
}

// SetPromise changes what one contract means on a link, at once.
func (g *Generation) SetPromise(index int, id plan.ContractID, p plan.Promise) error {
	t, err := g.openLink(index)
	if err != nil {
		return err
	}
	if err := t.contracts.Put(uint32(id), contract(p)); err != nil {
		return fmt.Errorf("write contract %d of link %d: %w", id, index, named(err))
	}
	return nil
}
