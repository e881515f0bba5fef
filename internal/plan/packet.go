package plan

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A Packet is what the headers say.
type Packet struct {
	Protocol uint8
	Source   netip.AddrPort
	Dest     netip.AddrPort
	DSCP     uint8
	Ports    bool // the protocol has ports, and this packet carries them
}

// ParsePacket reads a packet as a user writes one:
//
//	tcp 10.1.2.3:5000 > 192.0.2.1:22 dscp ef
//	icmp 10.1.2.3 > 192.0.2.1
//
// Protocol and DSCP are names or numbers as in a policy, the protocol in any
// case. The > and the dscp may be left out.
func ParsePacket(text string) (Packet, error) {
	const form = `want PROTOCOL SOURCE > DESTINATION [dscp N], as in "tcp 10.1.2.3:5000 > 192.0.2.1:22"`
	words := strings.Fields(strings.ReplaceAll(text, ">", " "))
	var p Packet
	if len(words) != 3 && !(len(words) == 5 && words[3] == "dscp") {
		return p, fmt.Errorf("parse flow %q: %s", text, form)
	}
	protocol, err := policy.ParseProtocol(strings.ToLower(words[0]))
	if err != nil {
		return p, fmt.Errorf("parse flow %q: %w", text, err)
	}
	p.Protocol, p.Ports = uint8(protocol), policy.HasPorts(protocol)
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
		dscp, err := policy.ParseDSCP(words[4])
		if err != nil {
			return p, fmt.Errorf("parse flow %q: %w", text, err)
		}
		p.DSCP = uint8(dscp)
	}
	return p, nil
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

// Frame is the packet as it stands on an Ethernet link: its headers, of which the
// transport's has ports at most, and no payload.
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
