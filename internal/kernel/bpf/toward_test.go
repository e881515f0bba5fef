package bpf

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// toward gives a contract prefixes, each a number of its own, and a limit by it.
func toward(rules *plan.Rules, l *plan.LinkRules, id plan.ContractID, prefixes ...string) {
	if rules.Toward == nil {
		rules.Toward = map[plan.PrefixOf]plan.Toward{}
	}
	for i, text := range prefixes {
		rules.Toward[plan.PrefixOf{Contract: id, Prefix: netip.MustParsePrefix(text)}] =
			plan.Toward{Number: uint16(1 + i), Limit: plan.Limit{Max: 1e9}}
	}
	p := l.Contracts[id]
	p.Toward = true
	l.Contracts[id] = p
}

// TestToward charges a packet for each workload to the longest of its prefixes that the
// destination is in, and to no other.
func TestToward(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	rules, l := noRules(), promises(3)
	const one, two, three = plan.FirstID, plan.FirstID + 1, plan.FirstID + 2
	toward(&rules, &l, one, "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "::/0", "2001:db8::/32")
	toward(&rules, &l, two, "0.0.0.0/0")
	g := begin(t, newRoom(t), 1, rules, Options{Controller: -1})
	load(t, g, benchLink, rules, l)
	spec, err := copied(parseLimit)
	if err != nil {
		t.Fatal(err)
	}
	var programs limitPrograms
	if err := spec.LoadAndAssign(&programs, g.shared(spec)); err != nil {
		t.Fatal(err)
	}
	defer programs.Close()
	udp := func(from, to string) []byte {
		return plan.Packet{Protocol: unix.IPPROTO_UDP, Ports: true, Source: netip.MustParseAddrPort(from), Dest: netip.MustParseAddrPort(to)}.Frame()
	}
	tagged := func(frame []byte, tags ...uint16) []byte {
		for _, tag := range tags {
			frame = slices.Insert(frame, 12, byte(tag>>8), byte(tag), 0, 7)
		}
		return frame
	}
	arp := slices.Concat(make([]byte, 12), []byte{8, 6}, make([]byte, 40))
	const from4, from6 = "10.1.2.3:1", "[2001:db8::1]:1"
	seen := map[plan.Owner]uint64{} // what was left of the credit of each budget
	for name, c := range map[string]struct {
		frame []byte
		want  map[plan.ContractID]uint16
	}{
		"in none of its own":     {udp(from4, "11.0.0.1:9"), map[plan.ContractID]uint16{two: 1}},
		"in one":                 {udp(from4, "10.2.0.1:9"), map[plan.ContractID]uint16{one: 1, two: 1}},
		"in two, the longer":     {udp(from4, "10.1.2.4:9"), map[plan.ContractID]uint16{one: 2, two: 1}},
		"an address":             {udp("192.0.2.1:1", "10.1.2.3:9"), map[plan.ContractID]uint16{one: 3, two: 1}},
		"any of IPv6":            {udp(from6, "[2001:db9::1]:9"), map[plan.ContractID]uint16{one: 4}},
		"one of IPv6":            {udp(from6, "[2001:db8:ffff::1]:9"), map[plan.ContractID]uint16{one: 5}},
		"with a VLAN tag":        {tagged(udp(from4, "10.2.0.1:9"), 0x8100), map[plan.ContractID]uint16{one: 1, two: 1}},
		"with two":               {tagged(udp(from6, "[2001:db8::2]:9"), 0x8100, 0x88a8), map[plan.ContractID]uint16{one: 5}},
		"with more than is read": {tagged(udp(from4, "10.2.0.1:9"), 0x8100, 0x8100, 0x8100), nil},
		"not IP":                 {arp, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := g.Held()
			if err != nil {
				t.Fatal(err)
			}
			const cb, size = 48, 192 // in struct __sk_buff
			context := make([]byte, size)
			for word, value := range []uint32{
				uint32(linkEgressLinkNumberFIRST_LINK), 0, uint32(three), uint32(two) | uint32(one)<<16, uint32(l.L2) << 16,
			} {
				binary.NativeEndian.PutUint32(context[cb+4*word:], value)
			}
			if _, err := programs.Limit.Run(&ebpf.RunOptions{Data: c.frame, Repeat: 1, Context: context}); err != nil {
				t.Fatal(err)
			}
			after, err := g.Held()
			if err != nil {
				t.Fatal(err)
			}
			var got map[plan.ContractID]uint16
			for of, h := range after {
				// What a chunk has paid ahead shows with the packet that took it.
				if credit(t, g, of, seen) || h.Passed > before[of].Passed {
					if got == nil {
						got = map[plan.ContractID]uint16{}
					}
					if got[of.Contract] != 0 {
						t.Errorf("contract %d is charged for two prefixes", of.Contract)
					}
					got[of.Contract] = of.Toward
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("charged (-want +got):\n%s", diff)
			}
		})
	}
}

// credit reports whether a packet was taken from what a budget had paid ahead, since it
// was seen last.
func credit(t *testing.T, g *Generation, of plan.Owner, seen map[plan.Owner]uint64) bool {
	t.Helper()
	has := givenAhead(t, g, numberFor(t, g, of))
	left, known := seen[of]
	seen[of] = has
	return known && left != has
}

// drawPrefix draws a prefix of either family.
func drawPrefix(t *rapid.T) netip.Prefix {
	address := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")))
	if rapid.Bool().Draw(t, "IPv6") {
		address = netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")))
	}
	return netip.PrefixFrom(address, rapid.IntRange(0, address.BitLen()).Draw(t, "bits")).Masked()
}

func TestPrefixKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := plan.PrefixOf{Contract: plan.ContractID(rapid.Uint16().Draw(t, "contract")), Prefix: drawPrefix(t)}
		if got := prefixOf(prefixKey(of)); got != of {
			t.Fatalf("%v became %v", of, got)
		}
	})
}

// TestTowardIsReadBack reads what was written.
func TestTowardIsReadBack(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	room := newRoom(t)
	rules, l := noRules(), promises(3)
	toward(&rules, &l, plan.FirstID, "10.0.0.0/8", "::/0", "0.0.0.0/0", "192.0.2.1/32")
	toward(&rules, &l, plan.FirstID+1, "10.0.0.0/8")
	shared := plan.Toward{Number: 7, Limit: plan.Limit{Max: 8e6, PPS: 20}}
	for _, text := range []string{"2001:db8::/32", "198.51.100.0/24"} {
		rules.Toward[plan.PrefixOf{Contract: plan.FirstID, Prefix: netip.MustParsePrefix(text)}] = shared
	}
	load(t, begin(t, room, 1, rules, Options{Controller: -1}), benchLink, rules, l)
	g, err := room.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	got, err := g.Rules()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(rules.Toward, got.Toward) || len(got.Limits) != 0 {
		t.Errorf("wrote %v, read %v and limits %v", rules.Toward, got.Toward, got.Limits)
	}
	promises, err := g.Promises(benchLink)
	if err != nil || !promises[plan.FirstID].Toward || promises[plan.FirstID+2].Toward {
		t.Errorf("promises %v, %v", promises, err)
	}
}
