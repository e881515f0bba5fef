package vrf

import (
	"bytes"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// routeTypes are the types that a policy can name. What the kernel makes by itself has others.
var routeTypes = map[uint8]policy.RouteType{
	unix.RTN_UNICAST: policy.Unicast, unix.RTN_UNREACHABLE: policy.Unreachable, unix.RTN_PROHIBIT: policy.Prohibit, unix.RTN_BLACKHOLE: policy.Blackhole,
}

// ourRoute is a declared route as the kernel takes it.
func (s *scene) ourRoute(r plan.DeclaredRoute, table uint32) (message, error) {
	m := message{head: make([]byte, routeHead)}
	m.head[0], m.head[1], m.head[5] = familyOf(r.To.Addr()), uint8(r.To.Bits()), unix.RTPROT_STATIC
	for number, name := range routeTypes {
		if name == r.Type {
			m.head[7] = number
		}
	}
	if r.To.Bits() > 0 {
		m.add(unix.RTA_DST, r.To.Addr().AsSlice())
	}
	if r.Via.IsValid() {
		m.add(unix.RTA_GATEWAY, r.Via.AsSlice())
	} else if r.Link != "" && r.To.Addr().Is4() {
		m.head[6] = unix.RT_SCOPE_LINK
	}
	if r.Link != "" {
		index, there := s.indexes[r.Link]
		if !there {
			return m, fmt.Errorf("route %s: no such link", r)
		}
		m.addNumber(unix.RTA_OIF, uint32(index))
	}
	if r.Metric != 0 {
		m.addNumber(unix.RTA_PRIORITY, r.Metric)
	}
	return inTable(m, table), nil
}

// routeOf is a route of the kernel's in words of a plan; ok is false of one that no policy can declare.
func (s *scene) routeOf(m message) (r plan.DeclaredRoute, ok bool) {
	if r.Type, ok = routeTypes[m.head[7]]; !ok || m.head[3] != 0 || m.get(unix.RTA_MULTIPATH) != nil {
		return r, false
	}
	to, ok := destination(m)
	if !ok {
		return r, false
	}
	r.To = to
	r.Metric, _ = m.number(unix.RTA_PRIORITY)
	if r.Type != policy.Unicast { // of IPv6 it tells lo
		return r, true
	}
	if via := m.get(unix.RTA_GATEWAY); via != nil {
		if r.Via, ok = netip.AddrFromSlice(via); !ok {
			return r, false
		}
	}
	index, _ := m.number(unix.RTA_OIF)
	r.Link, ok = s.names[int(index)]
	return r, ok && m.get(unix.RTA_VIA) == nil
}

// destination is where a route leads to.
func destination(m message) (to netip.Prefix, ok bool) {
	if m.head[1] == 0 {
		to := netip.IPv4Unspecified()
		if m.head[0] == unix.AF_INET6 {
			to = netip.IPv6Unspecified()
		}
		return netip.PrefixFrom(to, 0), true
	}
	address, ok := netip.AddrFromSlice(m.get(unix.RTA_DST))
	return netip.PrefixFrom(address, int(m.head[1])), ok
}

// A place is what of several routes in a table only one counts for.
type routePlace struct {
	to     netip.Prefix
	tos    uint8
	metric uint32
}

func (m message) place() routePlace {
	to, _ := destination(m)
	metric, _ := m.number(unix.RTA_PRIORITY)
	return routePlace{to, m.head[3], metric}
}

// isRoute reports whether two routes are the same, wherever they are from: to the same, the same way.
func (m message) isRoute(r message) bool {
	if m.place() != r.place() || m.head[7] != r.head[7] {
		return false
	}
	if m.head[7] != unix.RTN_UNICAST {
		return true
	}
	for _, kind := range []uint16{unix.RTA_GATEWAY, unix.RTA_OIF, unix.RTA_MULTIPATH, unix.RTA_VIA} {
		if !bytes.Equal(m.get(kind), r.get(kind)) {
			return false
		}
	}
	return true
}

// isHopOf reports whether a route is one hop of another: of IPv6 the kernel makes one route of several in a place.
func (m message) isHopOf(r message) bool {
	gateway := m.get(unix.RTA_GATEWAY)
	return len(gateway) > 0 && bytes.Contains(r.get(unix.RTA_MULTIPATH), gateway)
}
