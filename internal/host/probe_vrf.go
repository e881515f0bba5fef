package host

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ProbeVRF tries to make a VRF in a network namespace that is gone afterwards. The error
// is [ebpf.ErrNotSupported] where the kernel has none. It may load a module, so it is no
// part of [Probe].
func ProbeVRF() error {
	return inNewNetns(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "weir-probe"
		if err := netlink.LinkAdd(&netlink.Vrf{LinkAttrs: attrs, Table: 1000}); err != nil {
			return absentOn(fmt.Errorf("add vrf: %w", err), unix.EOPNOTSUPP)
		}
		return nil
	})
}
