package hosts

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Lacking is the error of a kernel without a means that a limit takes, and names
// that.
type Lacking string

// Error says what the kernel lacks.
func (l Lacking) Error() string { return "this kernel lacks the " + string(l) }

// absent makes a Lacking of the errors with which kernels refuse a kind of
// device, queue, filter or action that they do not know.
func absent(err error, what string) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		return Lacking(what)
	}
	return err
}

// MaxLimit is the highest limit in bit/s: the rates of police have 32 bits.
const MaxLimit = 8 * (1<<32 - 1)

// A Leaf is the queue in which packets wait for their turn below an HTB.
type Leaf string

const (
	FqCodel Leaf = "fq_codel" // flows wait apart, for 5 ms each
	OneFIFO Leaf = "one FIFO" // HTB's own, where the kernel has no fq_codel
)

// LimitByHTB holds what a bare device sends to a rate (bit/s, counted with
// Ethernet headers) in the usual way: an HTB with one class at its root. What is
// too early waits in its leaf, in a FIFO for 20 ms of the rate at most. Unlimit
// takes it away, and so does an error.
func (p Plug) LimitByHTB(rate uint64) (Leaf, error) {
	link, err := p.link()
	if err != nil {
		return "", p.limited("htb", err)
	}
	leaf, err := p.addHTB(link, rate)
	return leaf, p.limited("htb", err)
}

// LimitByPolice drops what is too early, in a filter ahead of the device's queue.
// It saves up 10 ms of the rate, and 64 KiB at least.
func (p Plug) LimitByPolice(rate uint64) error {
	police := netlink.NewPoliceAction()
	police.Rate, police.Burst = uint32(rate/8), uint32(max(rate/8/100, 64<<10))
	police.Mtu = 64<<10 + 14 // the largest packet before it is cut into segments
	police.ExceedAction = netlink.TC_POLICE_SHOT
	return p.limited("police", p.filter(police, "police action"))
}

// LimitByIfb sends everything through an HTB on another device, an ifb on the same
// host, as it is done where the device itself can have no queue.
func (p Plug) LimitByIfb(rate uint64) (Leaf, error) {
	leaf, err := p.detour(rate)
	return leaf, p.limited("ifb", err)
}

// limited passes an error on, and takes away what stands by then. Where that
// fails, the error is no Lacking: a caller who goes on without the means must not
// go on with half of it.
func (p Plug) limited(by string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("limit %s by %s: %w", p, by, err)
	if left := p.Unlimit(); left != nil {
		return fmt.Errorf("%v; what stands of it remains: %w", err, left)
	}
	return err
}

const ifb = "weir-ifb"

func (p Plug) detour(rate uint64) (Leaf, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = ifb
	if err := p.Host.handle.LinkAdd(&netlink.Ifb{LinkAttrs: attrs}); err != nil {
		return "", absent(err, "ifb device")
	}
	device := Plug{Host: p.Host, Device: ifb}
	link, err := device.link()
	if err != nil {
		return "", err
	}
	leaf, err := device.addHTB(link, rate)
	if err != nil {
		return "", err
	}
	if err := p.Host.handle.LinkSetUp(link); err != nil {
		return "", err
	}
	return leaf, p.filter(netlink.NewMirredAction(link.Attrs().Index), "mirred action")
}

const (
	rootHandle = 0x11e1 << 16 // of whatever queue limits a device
	htbClass   = rootHandle | 1
)

func (p Plug) addHTB(link netlink.Link, rate uint64) (Leaf, error) {
	// HTB gives its class a FIFO of the device's queue length, in packets.
	if err := p.Host.handle.LinkSetTxQLen(link, max(int(rate/8/1514/50), 40)); err != nil {
		return "", fmt.Errorf("set queue length: %w", err)
	}
	index := link.Attrs().Index
	htb := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: index, Parent: netlink.HANDLE_ROOT, Handle: rootHandle})
	htb.Defcls = htbClass & 0xffff
	if err := p.Host.handle.QdiscAdd(htb); err != nil {
		return "", absent(err, "htb qdisc")
	}
	burst := Line{Rate: rate}.burst()
	class := netlink.NewHtbClass(netlink.ClassAttrs{LinkIndex: index, Parent: rootHandle, Handle: htbClass},
		netlink.HtbClassAttrs{Rate: rate, Ceil: rate, Buffer: burst, Cbuffer: burst, Quantum: 1514})
	if err := p.Host.handle.ClassAdd(class); err != nil {
		return "", fmt.Errorf("add class of htb: %w", err)
	}
	leaf := netlink.NewFqCodel(netlink.QdiscAttrs{LinkIndex: index, Parent: htbClass, Handle: rootHandle + 1<<16})
	err := p.Host.handle.QdiscAdd(leaf)
	if errors.Is(err, unix.ENOENT) {
		return OneFIFO, nil
	} else if err != nil {
		return "", fmt.Errorf("add fq_codel: %w", err)
	}
	return FqCodel, nil
}

// filter runs an action on every packet that the device is to send.
func (p Plug) filter(action netlink.Action, what string) error {
	link, err := p.link()
	if err != nil {
		return err
	}
	attrs, err := p.atEgress(link.Attrs().Index)
	if err != nil {
		return err
	}
	actions := []netlink.Action{action}
	err = p.Host.handle.FilterAdd(&netlink.MatchAll{FilterAttrs: attrs, Actions: actions})
	if errors.Is(err, unix.ENOENT) { // no matchall, or no such action
		err = p.Host.handle.FilterAdd(&netlink.U32{FilterAttrs: attrs, Actions: actions})
	}
	return absent(err, what+", or both the matchall and the u32 filter")
}

// atEgress is where a filter of all that a device sends goes; it makes that place.
func (p Plug) atEgress(index int) (netlink.FilterAttrs, error) {
	clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Parent: netlink.HANDLE_CLSACT, Handle: clsactHandle}}
	if err := p.Host.handle.QdiscAdd(clsact); err != nil {
		return netlink.FilterAttrs{}, absent(err, "clsact qdisc")
	}
	return netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_EGRESS, Priority: 1, Protocol: unix.ETH_P_ALL}, nil
}

var clsactHandle = netlink.MakeHandle(0xffff, 0)

// Unlimit takes away what limits a device; one without a limit is left as it is.
func (p Plug) Unlimit() error {
	link, err := p.link()
	if err != nil {
		return err
	}
	qdiscs, err := p.Host.handle.QdiscList(link)
	if err != nil {
		return fmt.Errorf("read queues of %s: %w", p, err)
	}
	for _, q := range qdiscs {
		if handle := q.Attrs().Handle; handle == rootHandle || handle == clsactHandle {
			if err := p.Host.handle.QdiscDel(q); err != nil {
				return fmt.Errorf("take limit off %s: %w", p, err)
			}
		}
	}
	detour, err := p.Host.handle.LinkByName(ifb)
	if _, none := errors.AsType[netlink.LinkNotFoundError](err); none {
		return nil
	}
	if err == nil {
		err = p.Host.handle.LinkDel(detour)
	}
	if err != nil {
		return fmt.Errorf("take ifb off host %s: %w", p.Host.Name, err)
	}
	return nil
}
