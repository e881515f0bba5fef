package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/weir-net/weir/internal/plan"
)

// fillPromises writes what every contract means; those that nobody has keep the
// priority of whatever packet might name them.
func (g *Generation) fillPromises(index int, m *ebpf.Map, promises map[plan.ContractID]plan.Promise) error {
	keys, values := make([]uint32, m.MaxEntries()), make([]linkEgressContract, m.MaxEntries())
	for i := range keys {
		keys[i] = uint32(i)
		values[i] = linkEgressContract{Priority: plan.Keep}
	}
	for id, p := range promises {
		var err error
		if values[id], err = g.contract(index, id, p); err != nil {
			return err
		}
	}
	return fillSlices(m, keys, values)
}

// contract is the kernel's view of a promise. The limit of this link alone gets its
// budget here, or its departure; the one of all links together has it.
func (g *Generation) contract(index int, id plan.ContractID, p plan.Promise) (linkEgressContract, error) {
	c := linkEgressContract{Priority: p.Priority, Serial: p.Serial}
	if id < plan.FirstID { // a link's own limits go by these
		return c, nil
	}
	if p.Limited {
		if err := g.limitTogether(&c, plan.Owner{Contract: id}); err != nil {
			return c, err
		}
	}
	bytes, packets, err := g.setAmounts(plan.Owner{Contract: id, Link: index}, p.Here)
	if p.Here.Departs {
		c.Limited |= linkEgressLimitedDEPARTS_HERE
	}
	c.Here, c.HerePackets = uint16(bytes), uint16(packets)
	c.Prefixes = flag(p.Toward)
	more := p.Toward || c.TogetherPackets|c.Here|c.HerePackets != uint16(none)
	switch {
	case c.Limited == 0 && c.Together != uint16(none) && !more:
		c.Limited = linkEgressLimitedHAS_ONE
	case c.Together != uint16(none) || more:
		c.Limited |= linkEgressLimitedHAS_MORE
	}
	if p.Answers {
		c.Limited |= linkEgressLimitedANSWERS
	}
	if p.Weighted {
		c.Limited |= linkEgressLimitedHAS_WEIGHT
	}
	return c, err
}

// limitTogether fills in how a contract's limit of all links together is held. Until the
// limits are settled an older generation's may be there beside it.
func (g *Generation) limitTogether(c *linkEgressContract, of plan.Owner) error {
	if _, departs := g.departing[departing(of)]; departs {
		c.Limited |= linkEgressLimitedDEPARTS_TOGETHER
		return nil
	}
	all, err := g.numbers()
	if err != nil {
		return err
	}
	amounts := both(of)
	c.Together, c.TogetherPackets = uint16(all.of[amounts[0]].number), uint16(all.of[amounts[1]].number)
	if c.Together|c.TogetherPackets != uint16(none) {
		return nil
	}
	departures, err := g.departures() // of a generation that is in force
	if departures[of].Rate != 0 {
		c.Limited |= linkEgressLimitedDEPARTS_TOGETHER
	}
	return err
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
	limits, err := g.charged()
	if err != nil {
		return nil, err
	}
	departures, err := g.departures()
	if err != nil {
		return nil, err
	}
	promises := map[plan.ContractID]plan.Promise{}
	for id, c := range all {
		if id >= uint32(plan.FirstID) && c.Serial == 0 && c.Priority == plan.Keep {
			continue
		}
		p := plan.Promise{Priority: c.Priority, Serial: c.Serial, Weighted: c.Limited&linkEgressLimitedHAS_WEIGHT != 0}
		p.Answers = c.Limited&linkEgressLimitedANSWERS != 0
		together := plan.Owner{Contract: plan.ContractID(id)}
		here := plan.Owner{Contract: plan.ContractID(id), Link: index}
		if c.Limited&(linkEgressLimitedHAS_ONE|linkEgressLimitedHAS_MORE) != 0 {
			p.Toward = c.Prefixes != 0
			l := limits.named(together, c.Together, c.TogetherPackets)
			p.Limited = l != (plan.Limit{}) && l == limits.limitOf(together)
			p.Here = limits.named(here, c.Here, c.HerePackets)
		}
		if c.Limited&linkEgressLimitedDEPARTS_TOGETHER != 0 {
			p.Limited = departures[together].Rate != 0
		}
		if c.Limited&linkEgressLimitedDEPARTS_HERE != 0 {
			p.Here = departures[here].limit()
		}
		promises[plan.ContractID(id)] = p
	}
	return promises, nil
}

// SetPromise changes what one contract means on a link, at once.
func (g *Generation) SetPromise(index int, id plan.ContractID, p plan.Promise) error {
	t, err := g.openLink(index)
	if err != nil {
		return err
	}
	c, err := g.contract(index, id, p)
	if err != nil {
		return err
	}
	if err := t.contracts.Put(uint32(id), c); err != nil {
		return fmt.Errorf("write contract %d of link %d: %w", id, index, named(err))
	}
	return nil
}
