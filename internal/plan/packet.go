package plan

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// protocols are the names that ParsePacket knows beside plain numbers, and
// whether they have ports.
var protocols = map[string]struct {
	number uint8
	ports  bool
}{
	"icmp": {1, false}, "tcp": {6, true}, "udp": {17, true}, "dccp": {33, true}, "gre": {47, false}, "esp": {50, false},
	"icmpv6": {58, false}, "sctp": {132, true}, "udplite": {136, true},
}

// ParsePacket reads a packet as a user writes one:
//
//	tcp 10.1.2.3:5000 > 192.0.2.1:22 dscp 46
//	icmp 10.1.2.3 > 192.0.2.1
//
// The > and the dscp may be left out.
func ParsePacket(text string) (Packet, error) {
	const form = `want PROTOCOL SOURCE > DESTINATION [dscp N], as in "tcp 10.1.2.3:5000 > 192.0.2.1:22"`
	words := strings.Fields(strings.ReplaceAll(text, ">", " "))
	var p Packet
	if len(words) != 3 && !(len(words) == 5 && words[3] == "dscp") {
		return p, fmt.Errorf("parse flow %q: %s", text, form)
	}
	if known, ok := protocols[strings.ToLower(words[0])]; ok {
		p.Protocol, p.Ports = known.number, known.ports
	} else if n, err := strconv.ParseUint(words[0], 10, 8); err == nil {
		p.Protocol, p.Ports = uint8(n), hasPorts(uint8(n))
	} else {
		return p, fmt.Errorf("parse flow %q: unknown protocol %q; %s", text, words[0], form)
	}
	var err error
	if p.Source, err = parseEnd(words[1], p.Ports); err == nil {
		p.Dest, err = parseEnd(words[2], p.Ports)
	}
	if err != nil {
		return p, fmt.Errorf("parse flow %q: %w", text, err)
	}
	if p.Source.Addr().Is4() != p.Dest.Addr().Is4() {
		return p, fmt.Errorf("parse flow %q: one end is IPv4, the other IPv6", text)
	}
	if len(words) == 5 {
		dscp, err := strconv.ParseUint(words[4], 10, 8)
		if err != nil || dscp > 63 {
			return p, fmt.Errorf("parse flow %q: dscp %q is not a number from 0 to 63", text, words[4])
		}
		p.DSCP = uint8(dscp)
	}
	return p, nil
}

func hasPorts(protocol uint8) bool {
	for _, p := range protocols {
		if p.number == protocol {
			return p.ports
		}
	}
	return false
}

func parseEnd(text string, ports bool) (netip.AddrPort, error) {
	if ports {
		end, err := netip.ParseAddrPort(text)
		if err != nil {
			return end, fmt.Errorf("end %q is not in the form ADDRESS:PORT or [ADDRESS]:PORT", text)
		}
		return netip.AddrPortFrom(end.Addr().Unmap(), end.Port()), nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("end %q is not an address; this protocol has no ports", text)
	}
	return netip.AddrPortFrom(a.Unmap(), 0), nil
}

// Frame is the packet as it stands on an Ethernet link: headers and no payload.
func (p Packet) Frame() []byte {
	const ethernet, transport = 14, 20
	frame := make([]byte, ethernet)
	payload := make([]byte, transport)
	if p.Ports {
		binary.BigEndian.PutUint16(payload[0:], p.Source.Port())
		binary.BigEndian.PutUint16(payload[2:], p.Dest.Port())
	}
	if p.Source.Addr().Is4() {
		binary.BigEndian.PutUint16(frame[12:], 0x0800)
		ip := make([]byte, 20)
		ip[0], ip[1], ip[8], ip[9] = 0x45, p.DSCP<<2, 64, p.Protocol
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(payload)))
		copy(ip[12:], p.Source.Addr().AsSlice())
		copy(ip[16:], p.Dest.Addr().AsSlice())
		return append(append(frame, ip...), payload...)
	}
	binary.BigEndian.PutUint16(frame[12:], 0x86dd)
	ip := make([]byte, 40)
	binary.BigEndian.PutUint32(ip, 6<<28|uint32(p.DSCP)<<22)
	binary.BigEndian.PutUint16(ip[4:], uint16(len(payload)))
	ip[6], ip[7] = p.Protocol, 64
	copy(ip[8:], p.Source.Addr().AsSlice())
	copy(ip[24:], p.Dest.Addr().AsSlice())
	return append(append(frame, ip...), payload...)
}
