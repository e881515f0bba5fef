package vrf

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	addressHead   = unix.SizeofIfAddrmsg
	neighbourHead = unix.SizeofNdMsg

	ifaFlags = unix.IFA_FLAGS
	// What of an address' flags is asked for; all else is its state.
	askedFlags = unix.IFA_F_NODAD | unix.IFA_F_HOMEADDRESS | unix.IFA_F_MANAGETEMPADDR | unix.IFA_F_NOPREFIXROUTE | unix.IFA_F_MCAUTOJOIN
)

// luggage is what links have that move together, as it was when they set out.
type luggage struct {
	From       map[int]uint32 `json:"from"`       // link -> the table that it goes by there
	AcceptDAD  map[int]string `json:"accept_dad"` // link -> whether it looks for doubles of its addresses
	Addresses  [][]byte       `json:"addresses"`
	Routes     [][]byte       `json:"routes"`
	Neighbours [][]byte       `json:"neighbours"`
}

func (l *luggage) has(link int) bool { _, ok := l.From[link]; return ok }

// pack notes all that links have, but for what was added to a VRF: that comes back by itself where it is
// declared. Nothing is changed.
func pack(from map[int]uint32, but *memory) (*luggage, error) {
	l := &luggage{From: from, AcceptDAD: map[int]string{}}
	addresses, err := dump(unix.RTM_GETADDR, unix.RTM_NEWADDR, make([]byte, addressHead), addressHead)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, m := range inOrder(addresses) {
		if link := int(native.Uint32(m.head[4:])); l.has(link) && !but.addedAddress(link, prefixOf(m)) {
			l.Addresses = append(l.Addresses, askedAddress(m).bytes())
		}
	}
	for _, family := range families() {
		routes, err := listRoutes(family)
		if err != nil {
			return nil, err
		}
		for _, m := range routes {
			if carried(m) && slices.ContainsFunc(linksOf(m), l.has) && !but.addedRoute(m) {
				l.Routes = append(l.Routes, asked(m).bytes())
			}
		}
	}
	neighbours, err := dump(unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH, make([]byte, neighbourHead), neighbourHead)
	if err != nil {
		return nil, fmt.Errorf("list neighbours: %w", err)
	}
	for _, m := range neighbours {
		if family := m.head[0]; family != unix.AF_INET && family != unix.AF_INET6 || !l.has(int(native.Uint32(m.head[4:]))) {
			continue
		}
		if m, ok := askedNeighbour(m); ok {
			l.Neighbours = append(l.Neighbours, m.bytes())
		}
	}
	return l, nil
}

// inOrder are addresses in the order in which they lead to the list that the kernel gave: it puts a new
// one of IPv4 last, and one of IPv6 first.
func inOrder(addresses []message) (all []message) {
	for _, m := range addresses {
		if m.head[0] == unix.AF_INET {
			all = append(all, m)
		}
	}
	for _, m := range slices.Backward(addresses) {
		if m.head[0] != unix.AF_INET {
			all = append(all, m)
		}
	}
	return all
}

// askedAddress is an address as the kernel takes it. One that is of no further use to new
// connections has no preferred time left.
func askedAddress(m message) message {
	flags := uint32(m.head[2])
	if all, ok := m.number(ifaFlags); ok {
		flags = all
	}
	m = m.without(ifaFlags)
	m.head[2] = 0
	m.addNumber(ifaFlags, flags&askedFlags)
	return m
}

// askedNeighbour is a neighbour as the kernel takes it: one that somebody put there stays, and
// one that was found is asked once more when it is needed. ok is false of one that is not known.
func askedNeighbour(m message) (asked message, ok bool) {
	const ndaLLAddr, ndaCacheInfo, ndaProbes = 2, 3, 4
	if m.get(ndaLLAddr) == nil {
		return m, false
	}
	m = m.without(ndaCacheInfo, ndaProbes)
	switch state := native.Uint16(m.head[8:]); {
	case state&unix.NUD_PERMANENT != 0:
	case state&(unix.NUD_REACHABLE|unix.NUD_STALE|unix.NUD_DELAY|unix.NUD_PROBE) != 0:
		native.PutUint16(m.head[8:], unix.NUD_STALE)
	default:
		return m, false
	}
	return m, true
}

// addresses are the global addresses of one of the links.
func (l *luggage) addresses(link int) (all []netip.Addr, err error) {
	for _, raw := range l.Addresses {
		m, err := parse(raw, addressHead)
		if err != nil {
			return nil, err
		}
		if a := prefixOf(m).Addr(); a.IsGlobalUnicast() && int(native.Uint32(m.head[4:])) == link {
			all = append(all, a)
		}
	}
	return all, nil
}

// prefixOf is the address that an address of the kernel's is, with the length of its network.
func prefixOf(m message) netip.Prefix {
	value := m.get(unix.IFA_LOCAL)
	if value == nil {
		value = m.get(unix.IFA_ADDRESS)
	}
	a, _ := netip.AddrFromSlice(value)
	return netip.PrefixFrom(a, int(m.head[1]))
}

// merge adds what other links have.
func (l *luggage) merge(more *luggage) {
	maps.Copy(l.From, more.From)
	maps.Copy(l.AcceptDAD, more.AcceptDAD)
	l.Addresses = append(l.Addresses, more.Addresses...)
	l.Routes = append(l.Routes, more.Routes...)
	l.Neighbours = append(l.Neighbours, more.Neighbours...)
}

// unpack gives the links what they had, each thing in the table where it goes now: to says
// which table a link goes by. What is there already is as it shall be.
func (l *luggage) unpack(to map[int]uint32, at func(string, func() error) error) error {
	each := func(all [][]byte, head int, do func(message) error) error {
		for _, raw := range all {
			m, err := parse(raw, head)
			if err == nil {
				err = do(m)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	err := at("give moved links their addresses", func() error {
		return each(l.Addresses, addressHead, func(m message) error {
			return send(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, m, unix.EEXIST, unix.ENODEV)
		})
	})
	if err != nil {
		return err
	}
	err = at("give moved links their routes", func() error {
		var routes []message
		err := each(l.Routes, routeHead, func(m message) error {
			table := tableOf(m)
			for _, link := range linksOf(m) {
				if l.has(link) && l.From[link] == table {
					table = to[link]
				}
			}
			if table != tableOf(m) && m.get(unix.RTA_MULTIPATH) != nil {
				// The kernel takes none away of which one device has come up again.
				if err := send(unix.RTM_DELROUTE, 0, m, unix.ESRCH, unix.ENOENT); err != nil {
					return fmt.Errorf("delete route %s: %w", words(m), err)
				}
			}
			routes = append(routes, inTable(m, table))
			return nil
		})
		if err != nil {
			return err
		}
		return addRoutes(routes)
	})
	if err != nil {
		return err
	}
	return at("give moved links their neighbours", func() error {
		return each(l.Neighbours, neighbourHead, func(m message) error {
			return send(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, m, unix.ENODEV)
		})
	})
}
