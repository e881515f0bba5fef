package host

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Carriers returns the names of the devices of the current namespace that carry
// packets to an address, sorted: the one of the route, and those below it where
// it is a VLAN, a bond, a bridge or the like. What carries a tunnel's packets is
// not followed. at is the address of this host that the packets are from: where that is of a link in a VRF they go
// by its table. It may be the zero Addr.
func Carriers(to, at netip.Addr) ([]string, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	defer h.Close()
	index, err := routeIndex(h, to, at)
	if err != nil {
		return nil, err
	}
	devices, err := listDevices(h)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range stack(index, devices) {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return names, nil
}

func routeIndex(h *netlink.Handle, to, at netip.Addr) (int, error) {
	if zone := to.Zone(); zone != "" { // a link-local address says it itself
		device, err := h.LinkByName(zone)
		if err != nil {
			return 0, fmt.Errorf("find link %s: %w", zone, err)
		}
		return device.Attrs().Index, nil
	}
	vrf, err := vrfAt(h, at)
	if err != nil {
		return 0, err
	}
	routes, err := h.RouteGetWithOptions(to.Unmap().AsSlice(), &netlink.RouteGetOptions{VrfName: vrf})
	if err != nil {
		return 0, fmt.Errorf("find route to %s: %w", to, err)
	}
	if len(routes) == 0 {
		return 0, fmt.Errorf("find route to %s: there is none", to)
	}
	return routes[0].LinkIndex, nil
}

// vrfAt is the name of the VRF that the link with an address is in, "" if there is none.
func vrfAt(h *netlink.Handle, at netip.Addr) (string, error) {
	if !at.IsValid() {
		return "", nil
	}
	var addresses []netlink.Addr
	err := undisturbed(func() (err error) { addresses, err = h.AddrList(nil, netlink.FAMILY_ALL); return err })
	if err != nil {
		return "", fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addresses {
		if ip, ok := netip.AddrFromSlice(a.IP); !ok || ip.Unmap() != at.Unmap().WithZone("") {
			continue
		}
		link, err := h.LinkByIndex(a.LinkIndex)
		if err != nil {
			return "", fmt.Errorf("find the link with %s: %w", at, err)
		}
		if link.Attrs().MasterIndex == 0 {
			return "", nil
		}
		master, err := h.LinkByIndex(link.Attrs().MasterIndex)
		if err != nil {
			return "", fmt.Errorf("find what %s is in: %w", link.Attrs().Name, err)
		}
		if _, ok := master.(*netlink.Vrf); ok {
			return master.Attrs().Name, nil
		}
	}
	return "", nil
}
