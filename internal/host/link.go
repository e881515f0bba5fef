package host

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// Links reads all devices of the current network namespace by their names.
// MQPrioHW stays false: only an attempt on the device itself would tell.
func Links(ctx context.Context) (map[string]plan.LinkFacts, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	defer h.Close()
	devices, err := listDevices(h)
	if err != nil {
		return nil, err
	}
	qdiscs, err := roots()
	if err != nil {
		return nil, err
	}
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("open ethtool: %w", err)
	}
	defer tool.Close()

	links := make(map[string]plan.LinkFacts, len(devices))
	for _, device := range devices {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read links: %w", err)
		}
		a := device.Attrs()
		link := facts(a, qdiscs[a.Index], prober{tool})
		link.Ifb, link.VRF = device.Type() == "ifb", device.Type() == "vrf"
		links[a.Name] = link
	}
	// A bridge or a VLAN passes on what the devices below it say.
	for name, link := range links {
		invents := func(a *netlink.LinkAttrs) bool { return inventive[links[a.Name].Driver] }
		if link.Speed != 0 && slices.ContainsFunc(stack(link.Index, devices), invents) {
			link.Speed = 0
			links[name] = link
		}
	}
	return links, nil
}

func facts(a *netlink.LinkAttrs, root root, tool prober) plan.LinkFacts {
	if root.qdisc.Kind == "" {
		// A device that was never up has the built-in noop, which no dump shows.
		root.qdisc = plan.Qdisc{Kind: "noop", Default: true}
	}
	driver := tool.driver(a.Name)
	return plan.LinkFacts{
		Index:    a.Index,
		Speed:    tool.speed(a.Name, driver),
		TXQueues: queues(a.NumTxQueues, root.queues, tool.queues(a.Name)),
		Ethernet: ethernet(a.EncapType),
		Driver:   driver,
		Root:     root.qdisc,
		Up:       a.Flags&net.FlagUp != 0,
	}
}

// queues returns how many TX queues a device uses. rtnetlink tells how many it
// has room for, which since 5.18 is one for every CPU on any veth; a multiqueue
// root shows those in use one by one, and the driver's channels are the next
// best answer.
func queues(room, below, channels int) int {
	switch {
	case below > 0:
		return below
	case channels > 0:
		return min(room, channels)
	}
	return room
}

// ethernet reports whether packets at the egress of a device of this hardware
// type start with an Ethernet header. lo builds one too (eth_header).
func ethernet(hardware string) bool {
	return hardware == "ether" || hardware == "loopback"
}
