package bpf

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/plan"
)

// drawTuples draws shapes in any order, which is a stricter test than plan's own.
func drawTuples(t *rapid.T) []plan.Tuple {
	all := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) plan.Tuple {
		tuple := plan.Tuple{Fields: plan.Fields(rapid.IntRange(1, 15).Draw(t, "fields"))}
		if tuple.Fields&plan.FieldAddress != 0 {
			tuple.Bits = rapid.SampledFrom([]uint8{0, 1, 31, 32, 64, 96, 97, 104, 120, 127, 128}).Draw(t, "bits")
		}
		return tuple
	}), 0, 6, rapid.ID[plan.Tuple]).Draw(t, "tuples")
	return all
}

// The ends and ports that rules and packets are drawn from are few, so that
// they meet often.
var (
	addresses4 = []netip.Addr{
		netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.128.0.1"), netip.MustParseAddr("192.0.2.1"),
	}
	addresses6 = []netip.Addr{
		netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("2001:db8:8000::1"), netip.MustParseAddr("fd00::a00:1"),
	}
	somePorts     = []uint16{0, 22, 443, 5000}
	someProtocols = []uint8{6, 17, 132}
	someDSCPs     = []uint8{0, 10, 46}
)

func drawKey(t *rapid.T, tuples []plan.Tuple) plan.FlowKey {
	i := rapid.IntRange(0, len(tuples)-1).Draw(t, "tuple")
	tuple := tuples[i]
	k := plan.FlowKey{Tuple: uint16(i)}
	if tuple.Fields&plan.FieldAddress != 0 {
		a := rapid.SampledFrom(slices.Concat(addresses4, addresses6)).Draw(t, "address")
		bits := int(tuple.Bits)
		k.Family = 6
		if a.Is4() && bits >= 96 {
			k.Family, bits = 4, bits-96
		} else if a.Is4() {
			a = addresses6[0]
		}
		p, err := a.Prefix(bits)
		if err != nil {
			t.Fatal(err)
		}
		k.Address = p.Addr().As16()
	}
	if tuple.Fields&plan.FieldPort != 0 {
		k.Port = rapid.SampledFrom(somePorts).Draw(t, "port")
	}
	if tuple.Fields&plan.FieldProtocol != 0 {
		k.Protocol = rapid.SampledFrom(someProtocols).Draw(t, "protocol")
	}
	if tuple.Fields&plan.FieldDSCP != 0 {
		k.DSCP = rapid.SampledFrom(someDSCPs).Draw(t, "dscp")
	}
	return k
}

func TestFlowKeyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tuples := drawTuples(t)
		for _, tuple_ := range tuples {
			if got := planTuple(tuple(tuple_)); got != tuple_ {
				t.Fatalf("tuple %+v comes back as %+v", tuple_, got)
			}
		}
		if len(tuples) == 0 {
			return
		}
		k := drawKey(t, tuples)
		if got := planFlowKey(flowKey(k)); got != k {
			t.Fatalf("flow %+v comes back as %+v", k, got)
		}
	})
}

func TestFlowKeyIsNetworkOrder(t *testing.T) {
	k := flowKey(plan.FlowKey{Port: 0x1234, Address: [16]byte{15: 7, 0: 9}})
	if b := octets(k.Address); b[0] != 9 || b[15] != 7 {
		t.Errorf("address %v", b)
	}
	if networkOrder(k.Port) != 0x1234 {
		t.Errorf("port %#x", k.Port)
	}
}
