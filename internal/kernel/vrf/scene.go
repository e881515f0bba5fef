package vrf

import (
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// A scene is what there is of devices, addresses and routes.
type scene struct {
	names     map[int]string
	indexes   map[string]int
	masters   map[int]int
	addresses map[int][]netip.Prefix
	peers     map[int][]netip.Prefix
	routes    map[uint32][]message // by table
}

func look() (*scene, error) {
	s := &scene{map[int]string{}, map[string]int{}, map[int]int{}, map[int][]netip.Prefix{}, map[int][]netip.Prefix{}, map[uint32][]message{}}
	links, err := listLinks()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		a := l.Attrs()
		s.names[a.Index], s.indexes[a.Name], s.masters[a.Index] = a.Name, a.Index, a.MasterIndex
	}
	addresses, err := listAddresses(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		ip, ok := netip.AddrFromSlice(a.IP)
		if ones, _ := a.Mask.Size(); ok {
			s.addresses[a.LinkIndex] = append(s.addresses[a.LinkIndex], netip.PrefixFrom(ip.Unmap(), ones))
		}
		if a.Peer != nil {
			if ip, ok := netip.AddrFromSlice(a.Peer.IP); ok {
				ones, _ := a.Peer.Mask.Size()
				s.peers[a.LinkIndex] = append(s.peers[a.LinkIndex], netip.PrefixFrom(ip.Unmap(), ones).Masked())
			}
		}
	}
	for _, family := range families() {
		routes, err := listRoutes(family)
		if err != nil {
			return nil, err
		}
		for _, m := range routes {
			s.routes[tableOf(m)] = append(s.routes[tableOf(m)], m)
		}
	}
	return s, nil
}

// declared is what a VRF's device and its links have, and its table.
func (s *scene) declared(v *netlink.Vrf) (d plan.Declared) {
	own := v.Attrs().Index
	for index, addresses := range s.addresses {
		if index == own || s.masters[index] == own {
			for _, p := range addresses {
				d.Addresses = append(d.Addresses, plan.DeclaredAddress{Link: s.names[index], Prefix: p})
			}
		}
	}
	for _, m := range s.routes[v.Table] {
		if r, ok := s.routeOf(m); ok && s.stands(m) {
			d.Routes = append(d.Routes, r)
		}
	}
	return d
}

// added is what was added to a VRF, in words of a plan, but for what was of devices that are gone.
func (s *scene) added(of *added) (d plan.Declared, err error) {
	if of == nil {
		return d, nil
	}
	for _, a := range of.Addresses {
		if name := s.names[a.Device]; name != "" {
			d.Addresses = append(d.Addresses, plan.DeclaredAddress{Link: name, Prefix: a.Prefix})
		}
	}
	for _, a := range of.Routes {
		m, err := parse(a.Ours, routeHead)
		if err != nil {
			return d, err
		}
		if r, ok := s.routeOf(m); ok {
			d.Routes = append(d.Routes, r)
		}
	}
	return d, nil
}

// inPlace are the routes that are in the place of one.
func (s *scene) inPlace(m message) (all []message) {
	for _, r := range s.routes[tableOf(m)] {
		if r.place() == m.place() {
			all = append(all, r)
		}
	}
	return all
}

// stands reports whether packets go by a route, as far as that is up to others in its place: of IPv4 the first
// one counts.
func (s *scene) stands(m message) bool {
	all := s.inPlace(m)
	i := slices.IndexFunc(all, m.isRoute)
	return i == 0 || i > 0 && m.head[0] == unix.AF_INET6
}
