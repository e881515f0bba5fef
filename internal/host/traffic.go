package host

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/plan"
)

// Traffic reads what a device of the current network namespace has sent and received, by its
// own counters.
func Traffic(index int) (sent, received plan.Traffic, err error) {
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		return sent, received, fmt.Errorf("read counters of device %d: %w", index, err)
	}
	s := l.Attrs().Statistics
	if s == nil {
		return sent, received, fmt.Errorf("read counters of device %d: the kernel tells none", index)
	}
	return plan.Traffic{Packets: s.TxPackets, Bytes: s.TxBytes}, plan.Traffic{Packets: s.RxPackets, Bytes: s.RxBytes}, nil
}
