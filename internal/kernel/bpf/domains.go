package bpf

import (
	"fmt"

	"github.com/weir-net/weir/internal/plan"
)

// A Domain is the VRF to which new sockets of a contract are bound.
type Domain struct {
	Device int    // its number, in the namespace of the links
	Serial uint16 // of the contract
}

// fillDomains writes to which VRFs new sockets are bound.
func (g *Generation) fillDomains(domains map[plan.ContractID]Domain) error {
	entries := make(map[uint32]socketCreateDomain, len(domains))
	for id, d := range domains {
		entries[uint32(id)] = socketCreateDomain{Device: uint32(d.Device), Serial: d.Serial}
	}
	return fill(g.tables[socketCreateMapDomains], entries)
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
