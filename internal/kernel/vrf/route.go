package vrf

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	routeHead     = unix.SizeofRtMsg
	rtaExpires    = 23
	rtaNexthopID  = 30
	nexthopHead   = unix.SizeofRtNexthop
	mainTable     = unix.RT_TABLE_MAIN
	cachedRoute   = unix.RTM_F_CLONED
	onlinkNexthop = unix.RTNH_F_ONLINK
	ticksASecond  = 100 // USER_HZ, in which the kernel tells when a route expires
)

// listRoutes reads all routes of a family, of all tables.
func listRoutes(family uint8) (all []message, err error) {
	ask := make([]byte, routeHead)
	ask[0] = family
	if all, err = dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, ask, routeHead); err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	return slices.DeleteFunc(all, func(m message) bool { return native.Uint32(m.head[8:])&cachedRoute != 0 }), nil
}

// tableOf is the table that a route is in.
func tableOf(m message) uint32 {
	if table, ok := m.number(unix.RTA_TABLE); ok {
		return table
	}
	return uint32(m.head[4])
}

// inTable is a route in another table.
func inTable(m message, table uint32) message {
	m = m.without(unix.RTA_TABLE)
	m.head[4] = uint8(unix.RT_TABLE_COMPAT)
	if table < 256 {
		m.head[4] = uint8(table)
	}
	m.addNumber(unix.RTA_TABLE, table)
	return m
}

// linksOf are the devices by which a route goes.
func linksOf(m message) (links []int) {
	if index, ok := m.number(unix.RTA_OIF); ok {
		links = append(links, int(index))
	}
	eachNexthop(m.get(unix.RTA_MULTIPATH), func(hop []byte) { links = append(links, int(native.Uint32(hop[4:]))) })
	return links
}

// eachNexthop calls fn with the header of each next hop of a multipath route.
func eachNexthop(hops []byte, fn func(hop []byte)) {
	for len(hops) >= nexthopHead {
		size := int(native.Uint16(hops))
		if size < nexthopHead || size > len(hops) {
			return
		}
		fn(hops[:nexthopHead])
		hops = hops[min((size+3)&^3, len(hops)):]
	}
}

// carried reports whether a route goes with its links: the kernel makes local, broadcast
// and the like by itself, from addresses.
func carried(m message) bool { return m.head[7] == unix.RTN_UNICAST }

// asked is a route as the kernel takes it: without what it only tells.
func asked(m message) message {
	expires := uint32(0)
	if info := m.get(unix.RTA_CACHEINFO); len(info) >= 12 && m.head[0] == unix.AF_INET6 {
		if left := int32(native.Uint32(info[8:])); left > 0 {
			expires = uint32(left)/ticksASecond + 1
		}
	}
	m = m.without(unix.RTA_CACHEINFO, rtaNexthopID, unix.RTA_IIF, unix.RTA_UID, rtaExpires)
	native.PutUint32(m.head[8:], native.Uint32(m.head[8:])&onlinkNexthop)
	if expires > 0 {
		m.addNumber(rtaExpires, expires)
	}
	for i, a := range m.attrs {
		if a.kind&^flagsOfKind == unix.RTA_MULTIPATH {
			hops := slices.Clone(a.value)
			eachNexthop(hops, func(hop []byte) { hop[2] &= onlinkNexthop })
			m.attrs[i].value = hops
		}
	}
	return m
}

// addRoutes adds routes, those by a gateway after those by which the gateway is reached, in
// whatever order they come.
func addRoutes(routes []message) error {
	for len(routes) > 0 {
		var later []message
		var failed error
		for _, r := range routes {
			if err := send(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, r, unix.EEXIST); err != nil {
				later, failed = append(later, r), err
			}
		}
		if len(later) == len(routes) {
			return fmt.Errorf("add route %s: %w", words(later[0]), failed)
		}
		routes = later
	}
	return nil
}

// words puts a route into words: "default in table 254".
func words(m message) string {
	to := "default"
	if m.head[1] != 0 {
		if address, ok := netip.AddrFromSlice(m.get(unix.RTA_DST)); ok {
			to = netip.PrefixFrom(address, int(m.head[1])).String()
		}
	}
	return fmt.Sprintf("%s in table %d", to, tableOf(m))
}
