package vrf

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// loopbacks are the addresses of a VRF's own loopback, which its device is: programs in it
// that talk to 127.0.0.53 and the like find nobody without them.
func loopbacks() (all []netip.Prefix) {
	all = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}
	if len(families()) > 1 {
		all = append(all, netip.MustParsePrefix("::1/128"))
	}
	return all
}

// closing is the metric of the route that ends a VRF's table, so that what has no route
// there does not go on in the main table. It is the one that the kernel's documentation names.
const closing = 4278198272

// make makes the device of a VRF, with all that is its own.
func (w *work) make(name string, table uint32) error {
	v, err := device(name)
	if err != nil {
		return err
	}
	if v == nil {
		err := w.step("make vrf "+name, func() error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = name
			return netlink.LinkAdd(&netlink.Vrf{LinkAttrs: attrs, Table: table})
		})
		if err != nil {
			return err
		}
		if v, err = device(name); err != nil {
			return err
		}
		if v == nil {
			return fmt.Errorf("make vrf %s: it is gone again", name)
		}
	}
	lacks, err := lacksOf(v)
	if err != nil || len(lacks) == 0 {
		return err
	}
	return w.step("furnish vrf "+name+": a loopback of its own, and an end of its table", func() error { return furnish(v) })
}

// furnish gives a VRF what it lacks.
func furnish(v *netlink.Vrf) error {
	if err := netlink.LinkSetUp(v); err != nil {
		return err
	}
	for _, p := range loopbacks() {
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(v, a); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add %s: %w", p, err)
		}
	}
	for _, family := range families() {
		if err := send(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, closingRoute(family, v.Table), unix.EEXIST); err != nil {
			return fmt.Errorf("end the table: %w", err)
		}
	}
	return nil
}

// closingRoute says of everything that it can not be reached.
func closingRoute(family uint8, table uint32) message {
	m := message{head: make([]byte, routeHead)}
	m.head[0], m.head[5], m.head[7] = family, unix.RTPROT_STATIC, unix.RTN_UNREACHABLE
	m = inTable(m, table)
	m.addNumber(unix.RTA_PRIORITY, closing)
	return m
}

// lacksOf says in words what a VRF does not have of what makes it one.
func lacksOf(v *netlink.Vrf) (lacks []string, err error) {
	if v.Attrs().Flags&net.FlagUp == 0 {
		lacks = append(lacks, "it is down")
	}
	addresses, err := listAddresses(v, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.Name, err)
	}
	has := map[string]bool{}
	for _, a := range addresses {
		has[a.IPNet.String()] = true
	}
	for _, p := range loopbacks() {
		if !has[p.String()] {
			lacks = append(lacks, p.String()+" is missing")
		}
	}
	for _, family := range families() {
		routes, err := listRoutes(family)
		if err != nil {
			return nil, err
		}
		closed := false
		for _, r := range routes {
			metric, _ := r.number(unix.RTA_PRIORITY)
			closed = closed || tableOf(r) == v.Table && r.head[7] == unix.RTN_UNREACHABLE && r.head[1] == 0 && metric == closing
		}
		if !closed {
			lacks = append(lacks, "what has no route there goes on in the main table"+ofFamily(family))
		}
	}
	return lacks, nil
}

// unmake takes a VRF away that no link of ours is in any more. The kernel empties its table.
func (w *work) unmake(name string) error {
	m := w.memory
	return w.step("remove vrf "+name, func() error {
		v, err := device(name)
		if err != nil {
			return err
		}
		if v != nil && v.Table == m.Made[name] {
			if err := netlink.LinkDel(v); err != nil && !errors.Is(err, unix.ENODEV) {
				return err
			}
		}
		if err := w.dropSources(func(s source) bool { return s.Table == m.Made[name] }); err != nil {
			return err
		}
		if err := emptyTable(m.Made[name]); err != nil {
			return err
		}
		delete(m.Made, name)
		delete(m.Added, name)
		return w.room.save(m)
	})
}

// emptyTable takes away what is ours of a table: its end.
func emptyTable(table uint32) error {
	for _, family := range families() {
		if err := send(unix.RTM_DELROUTE, 0, closingRoute(family, table), unix.ESRCH, unix.ENOENT); err != nil {
			return fmt.Errorf("empty table %d: %w", table, err)
		}
	}
	return nil
}
