package host

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// listDevices reads all devices of the handle's namespace.
func listDevices(h *netlink.Handle) ([]netlink.Link, error) {
	var devices []netlink.Link
	if err := undisturbed(func() (err error) { devices, err = h.LinkList(); return err }); err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	return devices, nil
}

// undisturbed repeats a dump that changes of the dumped objects interrupted:
// what came back may then lack some of them.
func undisturbed(dump func() error) error {
	const attempts = 10
	var err error
	for range attempts {
		if err = dump(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return err
		}
	}
	return err
}

// paired are the kinds of which two make one: the parent of each is the other.
var paired = map[string]bool{"veth": true, "netkit": true}

// stack returns a device and all that it stands on: a VLAN on its parent, bonds
// and bridges on their ports.
func stack(index int, devices []netlink.Link) []*netlink.LinkAttrs {
	var found []*netlink.LinkAttrs
	seen := map[int]bool{}
	for queue := []int{index}; len(queue) > 0; queue = queue[1:] {
		if seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		for _, d := range devices {
			a := d.Attrs()
			if a.Index == queue[0] {
				found = append(found, a)
				// A parent in another namespace has a number of that one.
				if a.ParentIndex != 0 && a.NetNsID < 0 && !paired[d.Type()] {
					queue = append(queue, a.ParentIndex)
				}
			}
			if a.MasterIndex == queue[0] {
				queue = append(queue, a.Index)
			}
		}
	}
	return found
}
