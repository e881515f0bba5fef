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
// not followed.
func Carriers(to netip.Addr) ([]string, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	defer h.Close()
	index, err := routeIndex(h, to)
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

func routeIndex(h *netlink.Handle, to netip.Addr) (int, error) {
	if zone := to.Zone(); zone != "" { // a link-local address says it itself
		device, err := h.LinkByName(zone)
		if err != nil {
			return 0, fmt.Errorf("find link %s: %w", zone, err)
		}
		return device.Attrs().Index, nil
	}
	routes, err := h.RouteGet(to.Unmap().AsSlice())
	if err != nil {
		return 0, fmt.Errorf("find route to %s: %w", to, err)
	}
	if len(routes) == 0 {
		return 0, fmt.Errorf("find route to %s: there is none", to)
	}
	return routes[0].LinkIndex, nil
}
