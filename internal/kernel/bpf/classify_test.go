package bpf

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/plan"
)

// TestClassifyAgrees holds the kernel's answer against plan.Explain's, for any
// rules and any packets.
func TestClassifyAgrees(t *testing.T) {
	room := newRoom(t)
	n := uint32(0)
	rapid.Check(t, func(rt *rapid.T) {
		rules := noRules()
		rules.Tuples = drawTuples(rt)
		names := map[string]plan.Contract{}
		for i := range rapid.IntRange(0, 30).Draw(rt, "flows") {
			if len(rules.Tuples) == 0 {
				break
			}
			id := plan.FirstID + plan.ContractID(i)
			rules.Flows[drawKey(rt, rules.Tuples)] = id
			names[string(rune('a'+i))] = plan.Contract{ID: id, Serial: 1}
		}
		n++
		g, err := room.Begin(n, rules, bare)
		if err != nil {
			rt.Fatal(err)
		}
		defer g.Close()
		defer room.RemoveGeneration(n)
		if err := g.Fill(rules); err != nil {
			rt.Fatal(err)
		}
		program, err := g.loadClassify()
		if err != nil {
			rt.Fatal(err)
		}
		defer program.Close()
		for range 50 {
			p := drawPacket(rt)
			want := plan.Unclaimed
			if reasons := plan.Explain(plan.Subject{Packet: &p}, plan.State{Rules: rules, Contracts: names}); len(reasons) > 0 {
				want = names[reasons[0].Workload].ID
			}
			got, err := program.Run(&ebpf.RunOptions{Data: p.Frame(), Repeat: 1})
			if err != nil {
				rt.Fatal(err)
			}
			if plan.ContractID(got) != want {
				rt.Fatalf("%+v: the kernel says %d, plan %d", p, got, want)
			}
		}
	})
}

func drawPacket(t *rapid.T) plan.Packet {
	addresses := addresses4
	if rapid.Bool().Draw(t, "v6") {
		addresses = addresses6
	}
	end := func(name string) netip.AddrPort {
		return netip.AddrPortFrom(rapid.SampledFrom(addresses).Draw(t, name), rapid.SampledFrom(somePorts).Draw(t, name+" port"))
	}
	p := plan.Packet{
		Source: end("source"), Dest: end("destination"), DSCP: rapid.SampledFrom(someDSCPs).Draw(t, "dscp"),
		Protocol: rapid.SampledFrom([]uint8{1, 6, 17, 132}).Draw(t, "protocol"),
	}
	p.Ports = p.Protocol != 1
	if !p.Ports {
		p.Source, p.Dest = netip.AddrPortFrom(p.Source.Addr(), 0), netip.AddrPortFrom(p.Dest.Addr(), 0)
	}
	return p
}

// Frames are put together from these.
func ethernet(protocol uint16) []byte {
	return binary.BigEndian.AppendUint16(make([]byte, 12), protocol)
}

func vlan(protocol uint16) []byte { return binary.BigEndian.AppendUint16([]byte{0, 7}, protocol) }

func udpTo(port uint16) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{0x12, 0x34}, port), 0, 8, 0, 0)
}

// ipv4 is a header with options of the given length; fragment is its field as a whole.
func ipv4(protocol byte, fragment uint16, options, payload int) []byte {
	h := make([]byte, 20+options)
	h[0], h[8], h[9] = 0x40|byte(5+options/4), 64, protocol
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)+payload))
	binary.BigEndian.PutUint16(h[6:], fragment)
	copy(h[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	return h
}

func ipv6(next byte, payload int) []byte {
	h := make([]byte, 40)
	h[0], h[6], h[7] = 0x60, next, 64
	binary.BigEndian.PutUint16(h[4:], uint16(payload))
	h[8], h[23], h[24], h[39] = 0xfd, 1, 0xfd, 2
	return h
}

// extension is one of length bytes, filled so that anything in it taken for a
// port is one that no rule has.
func extension(next byte, length int) []byte {
	h := make([]byte, length)
	for i := range h {
		h[i] = 0xee
	}
	h[0], h[1] = next, byte(length/8-1)
	return h
}

func authentication(next byte, length int) []byte {
	h := extension(next, length)
	h[1] = byte(length/4 - 2)
	return h
}

func fragment(next byte, field uint16) []byte {
	h := make([]byte, 8)
	h[0] = next
	binary.BigEndian.PutUint16(h[2:], field)
	return h
}

func concat(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// v6 puts an IPv6 packet of headers and a datagram to port 22 together.
func v6(next byte, headers ...[]byte) []byte {
	rest := concat(append(headers, udpTo(22))...)
	return concat(ethernet(0x86dd), ipv6(next, len(rest)), rest)
}

func TestClassifyFrames(t *testing.T) {
	const (
		claimed      = plan.FirstID     // by port 22
		byAddress    = plan.FirstID + 1 // by address alone, which is less specific
		unclaimed    = plan.Unclaimed
		unclassified = plan.Unclassified

		hopByHop, udp, routing, frag, esp, ah, icmp6, none, dest = 0, 17, 43, 44, 50, 51, 58, 59, 60
		mh, hip, shim6, unknown                                  = 135, 139, 140, 253
	)
	rules := flowRules(
		[]plan.Tuple{{Fields: plan.FieldPort}, {Fields: plan.FieldAddress, Bits: 128}},
		plan.FlowKey{Tuple: 0, Port: 22},
		plan.FlowKey{Tuple: 1, Family: 6, Address: netip.MustParseAddr("fd00::2").As16()},
	)
	u := udpTo(22)
	var nine [][]byte
	for range 9 {
		nine = append(nine, extension(dest, 8))
	}
	eight := append(append([][]byte{}, nine[:7]...), extension(udp, 8))
	frames := map[string]struct {
		frame []byte
		want  plan.ContractID
	}{
		"v4":                       {concat(ethernet(0x0800), ipv4(udp, 0, 0, 8), u), claimed},
		"v4, don't fragment":       {concat(ethernet(0x0800), ipv4(udp, 0x4000, 0, 8), u), claimed},
		"v4, options":              {concat(ethernet(0x0800), ipv4(udp, 0, 12, 8), u), claimed},
		"v4, most options":         {concat(ethernet(0x0800), ipv4(udp, 0, 40, 8), u), claimed},
		"v4, first fragment":       {concat(ethernet(0x0800), ipv4(udp, 0x2000, 0, 8), u), claimed},
		"v4, later fragment":       {concat(ethernet(0x0800), ipv4(udp, 0x2001, 0, 8), u), unclassified},
		"v4, last fragment":        {concat(ethernet(0x0800), ipv4(udp, 0x0001, 0, 8), u), unclassified},
		"v4, fragment of no ports": {concat(ethernet(0x0800), ipv4(1, 0x0001, 0, 8), u), unclaimed},
		"v4, icmp":                 {concat(ethernet(0x0800), ipv4(1, 0, 0, 8), u), unclaimed},
		"v4, esp":                  {concat(ethernet(0x0800), ipv4(esp, 0, 0, 8), u), unclaimed},
		"v4, length of BIG TCP":    {concat(ethernet(0x0800), zeroed(ipv4(udp, 0, 0, 8), 2, 4), u), claimed},
		"v4, truncated ports":      {concat(ethernet(0x0800), ipv4(udp, 0, 0, 2), u[:2]), unclassified},
		"v4, ports in the padding": {concat(ethernet(0x0800), ipv4(udp, 0, 0, 0), u), unclassified},
		"v4, truncated options":    {concat(ethernet(0x0800), ipv4(udp, 0, 40, 0)[:24]), unclassified},
		"v4, short header length":  {concat(ethernet(0x0800), set(ipv4(udp, 0, 0, 8), 0, 0x44), u), unclassified},
		"v4, another version":      {concat(ethernet(0x0800), set(ipv4(udp, 0, 0, 8), 0, 0x65), u), unclassified},

		"v6":                           {v6(udp), claimed},
		"v6, by address":               {concat(ethernet(0x86dd), ipv6(udp, 8), udpTo(23)), byAddress},
		"v6, icmp":                     {v6(icmp6), byAddress},
		"v6, hop by hop":               {v6(hopByHop, extension(udp, 8)), claimed},
		"v6, long hop by hop":          {v6(hopByHop, extension(udp, 264)), claimed},
		"v6, routing":                  {v6(routing, extension(udp, 24)), claimed},
		"v6, destination options":      {v6(dest, extension(udp, 16)), claimed},
		"v6, mobility":                 {v6(mh, extension(udp, 8)), claimed},
		"v6, hip":                      {v6(hip, extension(udp, 40)), claimed},
		"v6, shim6":                    {v6(shim6, extension(udp, 8)), claimed},
		"v6, authentication":           {v6(ah, authentication(udp, 24)), claimed},
		"v6, authentication, odd":      {v6(ah, authentication(udp, 12)), claimed},
		"v6, all of them":              {v6(hopByHop, extension(routing, 8), extension(dest, 8), extension(ah, 8), authentication(frag, 24), fragment(udp, 0)), claimed},
		"v6, in order":                 {v6(hopByHop, extension(routing, 8), extension(ah, 24), authentication(frag, 24), fragment(dest, 0), extension(udp, 8)), claimed},
		"v6, esp":                      {v6(esp), byAddress},
		"v6, no next header":           {v6(none), byAddress},
		"v6, unknown":                  {v6(unknown), byAddress},
		"v6, first fragment":           {v6(frag, fragment(udp, 1)), claimed},
		"v6, atomic fragment":          {v6(frag, fragment(udp, 0)), claimed},
		"v6, later fragment":           {v6(frag, fragment(udp, 8|1)), unclassified},
		"v6, last fragment":            {v6(frag, fragment(udp, 8)), unclassified},
		"v6, later, of no ports":       {v6(frag, fragment(icmp6, 8)), byAddress},
		"v6, later, more headers":      {v6(frag, fragment(dest, 8), extension(udp, 8)), unclassified},
		"v6, eight extensions":         {v6(dest, eight...), claimed},
		"v6, more than eight":          {v6(dest, append(nine, extension(udp, 8))...), unclassified},
		"v6, extension beyond its end": {concat(ethernet(0x86dd), ipv6(dest, 8), extension(udp, 16), u), unclassified},
		"v6, truncated extension":      {concat(ethernet(0x86dd), ipv6(dest, 8)), unclassified},
		"v6, ports in the padding":     {concat(ethernet(0x86dd), ipv6(udp, 2), u), unclassified},
		"v6, jumbogram":                {concat(ethernet(0x86dd), ipv6(hopByHop, 0), extension(udp, 8), u), claimed},
		"v6, another version":          {concat(ethernet(0x86dd), set(ipv6(udp, 8), 0, 0x45), u), unclassified},

		"one tag":              {concat(ethernet(0x8100), vlan(0x0800), ipv4(udp, 0, 0, 8), u), claimed},
		"one tag, v6":          {concat(ethernet(0x8100), vlan(0x86dd), ipv6(udp, 8), u), claimed},
		"two tags":             {concat(ethernet(0x88a8), vlan(0x8100), vlan(0x0800), ipv4(udp, 0, 0, 8), u), claimed},
		"three tags":           {concat(ethernet(0x88a8), vlan(0x8100), vlan(0x8100), vlan(0x0800), ipv4(udp, 0, 0, 8), u), unclassified},
		"tagged, not IP":       {concat(ethernet(0x8100), vlan(0x0806), make([]byte, 28)), unclaimed},
		"arp":                  {concat(ethernet(0x0806), make([]byte, 28)), unclaimed},
		"a length, not a type": {concat(ethernet(0x0026), make([]byte, 38)), unclaimed},
	}
	g := begin(t, newRoom(t), 1, rules, bare)
	for name, f := range frames {
		t.Run(name, func(t *testing.T) {
			got, err := g.Classify(f.frame)
			if err != nil {
				t.Fatal(err)
			}
			if got != f.want {
				t.Errorf("contract %d, want %d: % x", got, f.want, f.frame)
			}
		})
	}
}

func set(b []byte, at int, value byte) []byte {
	b[at] = value
	return b
}

func zeroed(b []byte, from, to int) []byte {
	clear(b[from:to])
	return b
}

// TestClassifyFragments asks rules whose order decides what a later fragment may
// still be claimed by.
func TestClassifyFragments(t *testing.T) {
	prefix := netip.MustParseAddr("10.0.0.2").As16()
	address, port := plan.FlowKey{Family: 4, Address: prefix}, plan.FlowKey{Port: 22}
	both := plan.FlowKey{Family: 4, Address: prefix, Port: 22}
	for name, c := range map[string]struct {
		rules plan.Rules
		want  plan.ContractID
	}{
		"an address before ports": {flowRules([]plan.Tuple{{Fields: plan.FieldAddress, Bits: 128}, {Fields: plan.FieldPort}},
			address, numbered(port, 1)), plan.FirstID},
		"ports before the address": {flowRules([]plan.Tuple{{Fields: plan.FieldAddress | plan.FieldPort, Bits: 128}, {Fields: plan.FieldAddress, Bits: 128}},
			both, numbered(address, 1)), plan.Unclassified},
		"no ports at all": {flowRules([]plan.Tuple{{Fields: plan.FieldAddress, Bits: 104}}, address), plan.Unclaimed},
		"no rules":        {noRules(), plan.Unclaimed},
	} {
		t.Run(name, func(t *testing.T) {
			g := begin(t, newRoom(t), 1, c.rules, bare)
			got, err := g.Classify(concat(ethernet(0x0800), ipv4(17, 0x0001, 0, 8), udpTo(22)))
			if err != nil || got != c.want {
				t.Errorf("contract %d, want %d (%v)", got, c.want, err)
			}
		})
	}
}

func numbered(k plan.FlowKey, tuple uint16) plan.FlowKey {
	k.Tuple = tuple
	return k
}
