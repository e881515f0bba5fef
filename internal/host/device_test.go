package host

import (
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestUndisturbed(t *testing.T) {
	for _, tt := range []struct {
		interrupted int
		want        error
	}{{0, nil}, {9, nil}, {99, netlink.ErrDumpInterrupted}} {
		calls := 0
		err := undisturbed(func() error {
			if calls++; calls <= tt.interrupted {
				return netlink.ErrDumpInterrupted
			}
			return nil
		})
		if err != tt.want {
			t.Errorf("interrupted %d times: %v", tt.interrupted, err)
		}
	}
}

// A device stands on its parent and its ports, however deep, but not on the
// other end of its pair and on nothing of another namespace.
func TestStack(t *testing.T) {
	device := func(index, parent, master, netns int) netlink.LinkAttrs {
		return netlink.LinkAttrs{Index: index, ParentIndex: parent, MasterIndex: master, NetNsID: netns}
	}
	devices := []netlink.Link{
		&netlink.Device{LinkAttrs: device(1, 0, 4, -1)},
		&netlink.Device{LinkAttrs: device(2, 0, 4, -1)},
		&netlink.Veth{LinkAttrs: device(3, 6, 5, -1)},
		&netlink.Bond{LinkAttrs: device(4, 0, 5, -1)},
		&netlink.Bridge{LinkAttrs: device(5, 0, 0, -1)},
		&netlink.Veth{LinkAttrs: device(6, 3, 0, -1)},
		&netlink.Vlan{LinkAttrs: device(7, 5, 0, -1)},
		&netlink.Macvlan{LinkAttrs: device(8, 1, 0, 0)}, // 1 is a number of its parent's namespace
		&netlink.GenericLink{LinkType: "netkit", LinkAttrs: device(9, 6, 0, -1)},
	}
	for index, want := range map[int][]int{1: {1}, 4: {1, 2, 4}, 5: {1, 2, 3, 4, 5}, 7: {1, 2, 3, 4, 5, 7}, 6: {6}, 8: {8}, 9: {9}, 99: nil} {
		var got []int
		for _, a := range stack(index, devices) {
			got = append(got, a.Index)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%d stands on %d, want %d", index, got, want)
		}
	}
}
