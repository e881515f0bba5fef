package host

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Carriers returns the names of the devices of the current namespace that carry
// packets to an address: the one of the route, and those below it where it is a
// VLAN, a bond, a bridge or the like.
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
	var devices []netlink.Link
	if err := undisturbed(func() (err error) { devices, err = h.LinkList(); return err }); err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	return below(index, devices), nil
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

// below walks down from a device: a VLAN stands on its parent, bonds and
// bridges on their ports. A veth's parent is its peer, which may be elsewhere.
func below(index int, devices []netlink.Link) []string {
	var names []string
	seen := map[int]bool{}
	for queue := []int{index}; len(queue) > 0; queue = queue[1:] {
		if seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		for _, d := range devices {
			a := d.Attrs()
			if a.Index == queue[0] {
				names = append(names, a.Name)
				if a.ParentIndex != 0 && a.NetNsID < 0 && d.Type() != "veth" {
					queue = append(queue, a.ParentIndex)
				}
			}
			if a.MasterIndex == queue[0] {
				queue = append(queue, a.Index)
			}
		}
	}
	slices.Sort(names)
	return names
}
