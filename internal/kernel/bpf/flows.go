package bpf

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"github.com/weir-net/weir/internal/plan"
)

func flowKey(k plan.FlowKey) linkEgressFlowKey {
	return linkEgressFlowKey{
		Tuple: k.Tuple, Family: k.Family, Protocol: k.Protocol, Dscp: k.DSCP,
		Port: networkOrder(k.Port), Address: words(k.Address),
	}
}

func planFlowKey(k linkEgressFlowKey) plan.FlowKey {
	return plan.FlowKey{
		Tuple: k.Tuple, Family: k.Family, Protocol: k.Protocol, DSCP: k.Dscp,
		Port: networkOrder(k.Port), Address: octets(k.Address),
	}
}

// networkOrder is its own inverse.
func networkOrder(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

func words(address [16]byte) (w [4]uint32) {
	for i := range w {
		w[i] = binary.NativeEndian.Uint32(address[i*4:])
	}
	return w
}

func octets(w [4]uint32) (address [16]byte) {
	for i := range w {
		binary.NativeEndian.PutUint32(address[i*4:], w[i])
	}
	return address
}

func tuple(t plan.Tuple) linkEgressTuple {
	out := linkEgressTuple{Fields: uint32(t.Fields)}
	if t.Fields&plan.FieldAddress != 0 {
		ones := netip.AddrFrom16([16]byte{
			255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
		})
		mask, _ := ones.Prefix(int(t.Bits)) // Bits is at most 128
		out.Mask = words(mask.Addr().As16())
	}
	return out
}

func planTuple(t linkEgressTuple) plan.Tuple {
	out := plan.Tuple{Fields: plan.Fields(t.Fields)}
	for _, w := range t.Mask {
		out.Bits += uint8(bits.OnesCount32(w))
	}
	return out
}

// tuples reads the shapes back. No flow looks at nothing, so zeros are the unused
// rest of the table.
func (g *Generation) tuples() ([]plan.Tuple, error) {
	all, err := read[uint32, linkEgressTuple](g.tables[linkEgressMapTuples])
	if err != nil {
		return nil, err
	}
	var tuples []plan.Tuple
	for i := range uint32(len(all)) {
		if t := all[i]; t.Fields != 0 {
			tuples = append(tuples, planTuple(t))
		}
	}
	return tuples, nil
}

func dscpMatters(tuples []plan.Tuple) bool {
	for _, t := range tuples {
		if t.Fields&plan.FieldDSCP != 0 {
			return true
		}
	}
	return false
}
