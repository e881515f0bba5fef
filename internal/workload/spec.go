package workload

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

// A SocketSpec is how a user names one socket.
type SocketSpec struct {
	Protocol uint8 // unix.IPPROTO_TCP or unix.IPPROTO_UDP
	Local    netip.AddrPort
	Remote   netip.AddrPort // the zero AddrPort: not connected, or listening
}

// ParseSocketSpec reads "tcp 10.0.0.1:22 10.0.0.2:4711", "udp [::1]:53". The
// first address is the local one, as in the output of ss; without a second one
// the socket is listening or not connected.
func ParseSocketSpec(text string) (SocketSpec, error) {
	fields := strings.Fields(text)
	if len(fields) < 2 || len(fields) > 3 {
		return SocketSpec{}, fmt.Errorf("parse socket %q: want PROTOCOL LOCAL [REMOTE], as in %q", text, "tcp 10.0.0.1:22 10.0.0.2:4711")
	}
	var spec SocketSpec
	switch strings.ToLower(fields[0]) {
	case "tcp":
		spec.Protocol = unix.IPPROTO_TCP
	case "udp":
		spec.Protocol = unix.IPPROTO_UDP
	default:
		return SocketSpec{}, fmt.Errorf("parse socket %q: protocol %q is not tcp or udp", text, fields[0])
	}
	var err error
	if spec.Local, err = parseEnd(fields[1]); err != nil {
		return SocketSpec{}, fmt.Errorf("parse socket %q: %w", text, err)
	}
	if len(fields) == 2 {
		return spec, nil
	}
	if spec.Remote, err = parseEnd(fields[2]); err != nil {
		return SocketSpec{}, fmt.Errorf("parse socket %q: %w", text, err)
	}
	if spec.Local.Addr().Is4() != spec.Remote.Addr().Is4() {
		return SocketSpec{}, fmt.Errorf("parse socket %q: one end is IPv4, the other IPv6", text)
	}
	return spec, nil
}

func parseEnd(text string) (netip.AddrPort, error) {
	end, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q is not in the form ADDRESS:PORT or [ADDRESS]:PORT", text)
	}
	if end.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("address %q: port 0 is no port", text)
	}
	return netip.AddrPortFrom(end.Addr().Unmap(), end.Port()), nil
}

// String is the text that ParseSocketSpec reads.
func (s SocketSpec) String() string {
	text := "tcp "
	if s.Protocol == unix.IPPROTO_UDP {
		text = "udp "
	}
	text += s.Local.String()
	if s.Remote.IsValid() {
		text += " " + s.Remote.String()
	}
	return text
}

// matches compares the addresses. Zones are left out: sock_diag reports an
// interface instead, and only for sockets that are bound to one.
func (s SocketSpec) matches(entry SocketEntry) bool {
	same := func(a, b netip.AddrPort) bool {
		return a.Port() == b.Port() && a.Addr().WithZone("") == b.Addr().WithZone("")
	}
	return s.Protocol == entry.Protocol && same(s.Local, entry.Local) && same(s.Remote, entry.Remote)
}
