package bpf

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/weir-net/weir/internal/plan"
)

// fillToward files the prefixes to which contracts may send only so much, and gives
// their limits budgets: prefixes of one number share them.
func (g *Generation) fillToward(toward map[plan.PrefixOf]plan.Toward) error {
	entries := make(map[limitPrefix]limitToward, len(toward))
	for _, of := range slices.SortedFunc(maps.Keys(toward), byContract) {
		t := toward[of]
		bytes, packets, err := g.setBudgets(plan.Owner{Contract: of.Contract, Toward: t.Number}, t.Limit)
		if err != nil {
			return err
		}
		entries[prefixKey(of)] = limitToward{Number: t.Number, Bytes: uint16(bytes), Packets: uint16(packets)}
	}
	return fill(g.tables[limitMapPrefixes], entries)
}

// byContract orders them, so that the same policy gives out the same numbers.
func byContract(a, b plan.PrefixOf) int {
	return cmp.Or(cmp.Compare(a.Contract, b.Contract), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
}

// toward reads back what contracts may send to prefixes: nothing where no program
// charges it.
func (g *Generation) toward() (map[plan.PrefixOf]plan.Toward, error) {
	limits, err := g.charged()
	if err != nil {
		return nil, err
	}
	// Batches over an LPM trie give no cursor that can be trusted.
	entries, err := readOneByOne[limitPrefix, limitToward](g.tables[limitMapPrefixes])
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	toward := make(map[plan.PrefixOf]plan.Toward, len(entries))
	for k, v := range entries {
		of := prefixOf(k)
		owner := plan.Owner{Contract: of.Contract, Toward: v.Number}
		toward[of] = plan.Toward{Number: v.Number, Limit: limits.named(owner, v.Bytes, v.Packets)}
	}
	return toward, nil
}

// wholeBits are those of a prefix' key that are no address: its contract and family.
const wholeBits = 32

// mappedBits is how much longer an IPv4 prefix is, mapped into IPv6.
const mappedBits = 96

func prefixKey(of plan.PrefixOf) limitPrefix {
	address := of.Prefix.Addr().As16()
	k := limitPrefix{Bits: wholeBits + uint32(of.Prefix.Bits()), Contract: uint16(of.Contract), Family: 6, Address: words(address)}
	if of.Prefix.Addr().Is4() {
		k.Bits, k.Family = k.Bits+mappedBits, 4
	}
	return k
}

// prefixOf is the inverse of prefixKey.
func prefixOf(k limitPrefix) plan.PrefixOf {
	address, bits := netip.AddrFrom16(octets(k.Address)), int(k.Bits)-wholeBits
	if k.Family == 4 {
		address, bits = address.Unmap(), bits-mappedBits
	}
	return plan.PrefixOf{Contract: plan.ContractID(k.Contract), Prefix: netip.PrefixFrom(address, bits)}
}
