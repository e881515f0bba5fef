package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/weir-net/weir/internal/plan"
)

// A Domain is the VRF to which new sockets of a contract are bound.
type Domain struct {
	Device int    // its number
	Netns  uint32 // number of the network namespace of the links, where that device is
	Serial uint16 // of the contract
}

func (d Domain) entry() socketCreateDomain {
	return socketCreateDomain{Device: uint32(d.Device), Netns: d.Netns, Serial: d.Serial}
}

// fillDomains writes to which VRFs new sockets are bound.
func (g *Generation) fillDomains(domains map[plan.ContractID]Domain) error {
	entries := make(map[uint32]socketCreateDomain, len(domains))
	for id, d := range domains {
		entries[uint32(id)] = d.entry()
	}
	return fill(g.tables[socketCreateMapDomains], entries)
}

// SetDomain binds new sockets of processes with the tag of a contract to a VRF at once, of a
// generation that is in force. It returns ErrFull.
func (g *Generation) SetDomain(id plan.ContractID, d Domain) error {
	if err := g.tables[socketCreateMapDomains].Put(uint32(id), d.entry()); err != nil {
		return fmt.Errorf("write domain of contract %d: %w", id, named(err))
	}
	return nil
}

// RemoveDomain takes back what [Generation.SetDomain] did. A contract without one is fine.
func (g *Generation) RemoveDomain(id plan.ContractID) error {
	if err := g.tables[socketCreateMapDomains].Delete(uint32(id)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove domain of contract %d: %w", id, err)
	}
	return nil
}

// Domains reads back to which devices new sockets of contracts are bound.
func (g *Generation) Domains() (map[plan.ContractID]int, error) {
	entries, err := read[uint32, socketCreateDomain](g.tables[socketCreateMapDomains])
	if err != nil {
		return nil, fmt.Errorf("read domains: %w", err)
	}
	domains := make(map[plan.ContractID]int, len(entries))
	for id, d := range entries {
		domains[plan.ContractID(id)] = int(d.Device)
	}
	return domains, nil
}
