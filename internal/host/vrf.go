package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// ErrNoVRF says that the kernel has no VRF.
var ErrNoVRF = errors.New("this kernel has no VRF (CONFIG_NET_VRF, module vrf)")

// VRFPossible makes a VRF in a namespace that is gone afterwards, and returns ErrNoVRF where
// the kernel knows no such device. Other errors say that this was not found out.
func VRFPossible() error {
	err := inNewNetns(func() error {
		a := netlink.NewLinkAttrs()
		a.Name = "vrf0"
		return absentOn(netlink.LinkAdd(&netlink.Vrf{LinkAttrs: a, Table: 1}), unix.EOPNOTSUPP)
	})
	if errors.Is(err, ebpf.ErrNotSupported) {
		return ErrNoVRF
	}
	return err
}

// acceptSysctls let a socket that is in no VRF answer in all of them.
var acceptSysctls = []string{"tcp_l3mdev_accept", "udp_l3mdev_accept", "raw_l3mdev_accept"}

// VRFDevices reads the VRFs of the current network namespace and the devices that are in them, and
// nothing else of them. It needs no privilege.
func VRFDevices() ([]plan.VRFDevice, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	defer h.Close()
	devices, err := listDevices(h)
	if err != nil {
		return nil, err
	}
	return vrfDevices(devices), nil
}

func vrfDevices(devices []netlink.Link) []plan.VRFDevice {
	found := []plan.VRFDevice{}
	for _, d := range devices {
		v, ok := d.(*netlink.Vrf)
		if !ok {
			continue
		}
		own := plan.VRFDevice{
			Name: v.Name, Index: v.Index, Table: v.Table, Up: v.Flags&net.FlagUp != 0,
			Addresses: []netip.Prefix{}, Members: []plan.VRFMember{}, Routes: []plan.VRFRoute{},
		}
		for _, m := range devices {
			if a := m.Attrs(); a.MasterIndex == v.Index {
				own.Members = append(own.Members, plan.VRFMember{
					Name: a.Name, Index: a.Index, Up: a.Flags&net.FlagUp != 0, Addresses: []netip.Prefix{},
				})
			}
		}
		slices.SortFunc(own.Members, func(a, b plan.VRFMember) int { return strings.Compare(a.Name, b.Name) })
		found = append(found, own)
	}
	slices.SortFunc(found, func(a, b plan.VRFDevice) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// VRFs reads all that there is to know of the routing domains of the current network
// namespace. It needs no privilege.
func VRFs(ctx context.Context) (plan.VRFFacts, error) {
	facts := plan.VRFFacts{Accept: map[string]int{}}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return facts, fmt.Errorf("open rtnetlink: %w", err)
	}
	defer h.Close()
	devices, err := listDevices(h)
	if err != nil {
		return facts, err
	}
	addresses, err := addressesOf(h)
	if err != nil {
		return facts, err
	}
	names := map[int]string{}
	for _, d := range devices {
		names[d.Attrs().Index] = d.Attrs().Name
	}
	facts.VRFs = vrfDevices(devices)
	for i := range facts.VRFs {
		v := &facts.VRFs[i]
		if err := ctx.Err(); err != nil {
			return facts, fmt.Errorf("read VRFs: %w", err)
		}
		v.Addresses = append(v.Addresses, addresses[v.Index]...)
		for i := range v.Members {
			m := &v.Members[i]
			m.Addresses = append(m.Addresses, addresses[m.Index]...)
		}
		if v.Routes, err = routesOf(h, v.Table, names); err != nil {
			return facts, err
		}
	}
	if facts.Rules, err = rules(); err != nil {
		return facts, err
	}
	for _, name := range acceptSysctls {
		value, ok, err := sysctl("net/ipv4/" + name)
		if err != nil {
			return facts, err
		}
		if ok {
			facts.Accept[name] = value
		}
	}
	return facts, nil
}

func addressesOf(h *netlink.Handle) (map[int][]netip.Prefix, error) {
	found := map[int][]netip.Prefix{}
	var list []netlink.Addr
	if err := undisturbed(func() (err error) { list, err = h.AddrList(nil, netlink.FAMILY_ALL); return err }); err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range list {
		found[a.LinkIndex] = append(found[a.LinkIndex], prefixOf(a.IPNet))
	}
	return found, nil
}

func prefixOf(n *net.IPNet) netip.Prefix {
	if n == nil {
		return netip.Prefix{}
	}
	a, _ := netip.AddrFromSlice(n.IP)
	bits, length := n.Mask.Size()
	if length == 32 {
		a = a.Unmap()
	}
	return netip.PrefixFrom(a, bits)
}

// routeKinds are the routes that somebody made, and not the kernel for its addresses.
var routeKinds = map[int]string{
	unix.RTN_UNICAST: "unicast", unix.RTN_UNREACHABLE: "unreachable", unix.RTN_BLACKHOLE: "blackhole",
	unix.RTN_PROHIBIT: "prohibit", unix.RTN_THROW: "throw",
}

func routesOf(h *netlink.Handle, table uint32, names map[int]string) ([]plan.VRFRoute, error) {
	routes := []plan.VRFRoute{}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		var list []netlink.Route
		err := undisturbed(func() (err error) {
			list, err = h.RouteListFiltered(family, &netlink.Route{Table: int(table)}, netlink.RT_FILTER_TABLE)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list routes of table %d: %w", table, err)
		}
		for _, r := range list {
			kind, ok := routeKinds[r.Type]
			if !ok {
				continue
			}
			routes = append(routes, routeOf(r, kind, family, names))
		}
	}
	return routes, nil
}

func routeOf(r netlink.Route, kind string, family int, names map[int]string) plan.VRFRoute {
	found := plan.VRFRoute{Kind: kind, Metric: uint32(r.Priority), Gateways: []netip.Addr{}, Devices: []string{}}
	found.Destination = prefixOf(r.Dst)
	if r.Dst == nil {
		found.Destination = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if family == netlink.FAMILY_V6 {
			found.Destination = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
	}
	hop := func(gateway net.IP, via netlink.Destination, index int) {
		if kind != "unicast" {
			return // what refuses is said to be at lo
		}
		if v, ok := via.(*netlink.Via); ok {
			gateway = v.Addr
		}
		a, _ := netip.AddrFromSlice(gateway)
		found.Gateways = append(found.Gateways, a.Unmap())
		found.Devices = append(found.Devices, names[index])
	}
	if len(r.MultiPath) == 0 {
		hop(r.Gw, r.Via, r.LinkIndex)
	}
	for _, m := range r.MultiPath {
		hop(m.Gw, m.Via, m.LinkIndex)
	}
	return found
}

// sysctl reads a number of the calling thread's namespaces; ok is false where the kernel has none.
func sysctl(name string) (value int, ok bool, err error) {
	text, err := os.ReadFile("/proc/sys/" + name)
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err == nil {
		value, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil {
		return 0, false, fmt.Errorf("read sysctl %s: %w", name, err)
	}
	return value, true, nil
}

// NetnsName is the name that /run/netns has for the calling thread's network namespace, ""
// if it has none.
func NetnsName() (string, error) {
	var here, there unix.Stat_t
	if err := unix.Stat(threadNetns, &here); err != nil {
		return "", fmt.Errorf("read current network namespace: %w", err)
	}
	entries, err := os.ReadDir("/run/netns")
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("list network namespaces: %w", err)
	}
	for _, e := range entries {
		if unix.Stat("/run/netns/"+e.Name(), &there) == nil && there.Dev == here.Dev && there.Ino == here.Ino {
			return e.Name(), nil
		}
	}
	return "", nil
}
