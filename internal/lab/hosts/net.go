package hosts

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Net is a network of hosts. The zero Net is empty and ready for use; Close
// takes all of it down.
type Net struct {
	hosts []*Host
}

// Host adds a host. The caller has nothing to close but the Net.
func (n *Net) Host(name string) (*Host, error) {
	h, err := newHost(name)
	if err != nil {
		return nil, err
	}
	n.hosts = append(n.hosts, h)
	return h, nil
}

// Close lets go of all hosts. Their devices and queues go with them as soon as
// no process and no socket is left inside.
func (n *Net) Close() error {
	var all []error
	for _, h := range n.hosts {
		all = append(all, h.close())
	}
	n.hosts = nil
	return errors.Join(all...)
}

// A Plug is one end of a wire: a device on a host and its addresses.
type Plug struct {
	Host      *Host
	Device    string
	Addresses []netip.Prefix
}

// Segments is how many segments a packet may have on its way to a line of a
// rate (bit/s): what the line sends in a tenth of a millisecond, as a network
// card with a small ring would have it. A packet of 64 KiB, the usual size with
// segmentation offload, would occupy a 100 Mbit/s line for 5 ms, and a queue of
// a few milliseconds would hold just one; single segments on a 10 Gbit/s line
// would measure the CPU.
func Segments(rate uint64) int {
	return int(min(max(rate/8/10_000/1514, 1), 40))
}

// Whole is how many segments a packet may have where a wire takes what TCP hands down, as a veth of a container does.
const Whole = 65535

// Wire joins two hosts by a veth pair, device and addresses as the plugs say,
// both ends up, for packets of so many segments.
func Wire(a, b Plug, segments int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = a.Device
	attrs.Namespace = netlink.NsFd(int(a.Host.file.Fd()))
	veth := netlink.NewVeth(attrs)
	veth.PeerName = b.Device
	veth.PeerNamespace = netlink.NsFd(int(b.Host.file.Fd()))
	if err := a.Host.handle.LinkAdd(veth); err != nil {
		return fmt.Errorf("wire %s to %s: %w", a, b, err)
	}
	return errors.Join(a.configure(segments), b.configure(segments))
}

// String is the host and its device.
func (p Plug) String() string { return p.Host.Name + ":" + p.Device }

func (p Plug) configure(segments int) error {
	link, err := p.link()
	if err != nil {
		return err
	}
	if err := p.Host.handle.LinkSetGSOMaxSegs(link, segments); err != nil {
		return fmt.Errorf("limit segments of %s: %w", p, err)
	}
	for _, address := range p.Addresses {
		addr := &netlink.Addr{IPNet: ipNet(address), Flags: unix.IFA_F_NODAD}
		if err := p.Host.handle.AddrAdd(link, addr); err != nil {
			if address.Addr().Is6() && noIPv6() {
				continue
			}
			return fmt.Errorf("give %s to %s: %w", address, p, err)
		}
	}
	if err := p.Host.handle.LinkSetUp(link); err != nil {
		return fmt.Errorf("start %s: %w", p, err)
	}
	return nil
}

// SetMTU gives the device the largest packet that it takes, in bytes. The other end of the
// wire needs the same.
func (p Plug) SetMTU(bytes int) error {
	link, err := p.link()
	if err != nil {
		return err
	}
	if err := p.Host.handle.LinkSetMTU(link, bytes); err != nil {
		return fmt.Errorf("set MTU of %s: %w", p, err)
	}
	return nil
}

// Received is what has arrived at the device since it was made, in packets as the
// sender handed them over, and in bytes with their Ethernet headers.
func (p Plug) Received() (packets, bytes uint64, err error) {
	link, err := p.link()
	if err != nil {
		return 0, 0, err
	}
	s := link.Attrs().Statistics
	if s == nil {
		return 0, 0, fmt.Errorf("read counters of %s: it has none", p)
	}
	return s.RxPackets, s.RxBytes, nil
}

// link looks the device up.
func (p Plug) link() (netlink.Link, error) {
	link, err := p.Host.handle.LinkByName(p.Device)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", p, err)
	}
	return link, nil
}

func noIPv6() bool {
	_, err := os.Stat("/proc/sys/net/ipv6")
	return errors.Is(err, os.ErrNotExist)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
