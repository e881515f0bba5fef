package tc

import (
	"bytes"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// Where acknowledgements wait that no link keeps: a pair of devices, a veth, with a queue at one
// end. What has passed it comes out at the other, where a program sends it on its way.

// The two ends, by name.
const (
	WaitingDevice = "weir-wait"
	BackDevice    = "weir-back"
)

// waitingAddress is that of both devices, and how they are known (see detourAddress).
func waitingAddress() net.HardwareAddr { return net.HardwareAddr{2, 'w', 'e', 'i', 'r', 1} }

// findEnd finds one end of the pair, nil if there is none. A device of that name that is not ours is
// an error that wraps [ErrForeign].
func findEnd(name string) (netlink.Link, error) {
	l, err := netlink.LinkByName(name)
	if _, none := errors.AsType[netlink.LinkNotFoundError](err); none {
		return nil, nil
	}
	if err != nil {
		return nil, kernelError(0, "find "+name, "", err)
	}
	if l.Type() != "veth" || !bytes.Equal(l.Attrs().HardwareAddr, waitingAddress()) {
		return nil, refuse(0, ErrForeign, "the device %s is not Weir's, and has the name of one that Weir needs: give it another name", name)
	}
	return l, nil
}

// ends finds both; either may be nil.
func ends() (wait, back netlink.Link, err error) {
	if wait, err = findEnd(WaitingDevice); err == nil {
		back, err = findEnd(BackDevice)
	}
	return wait, back, err
}

// CheckWaiting returns an error that wraps [ErrForeign] where another's device has the name of one of
// ours.
func CheckWaiting() error {
	_, _, err := ends()
	return err
}

// MakeWaiting makes the pair unless it is there. It is down, and has no queue of ours yet.
func MakeWaiting() error {
	wait, back, err := ends()
	if err == nil && (wait == nil) != (back == nil) { // somebody has moved one away
		err = RemoveWaiting()
		wait = nil
	}
	if err == nil && wait == nil {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.HardwareAddr = WaitingDevice, waitingAddress()
		err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: BackDevice, PeerHardwareAddr: waitingAddress()})
		if err != nil {
			err = kernelError(0, "add "+WaitingDevice, "veth device", err)
		}
	}
	if err != nil {
		return err
	}
	for _, name := range []string{WaitingDevice, BackDevice} {
		if err := dressEnd(name); err != nil {
			return err
		}
	}
	return nil
}

// dressEnd tells people what a device is for, and keeps it quiet.
func dressEnd(name string) error {
	l, err := findEnd(name)
	if err != nil {
		return err
	}
	if l == nil {
		return refuse(0, ErrDrift, "%s went away as soon as it was made", name)
	}
	if err := netlink.LinkSetAlias(l, "where acknowledgements wait, held to a rate by weir"); err != nil {
		return kernelError(l.Attrs().Index, "name the use of "+name, "", err)
	}
	err = netlink.LinkSetIP6AddrGenMode(l, noAddresses)
	if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) { // a host without IPv6
		return kernelError(l.Attrs().Index, "keep "+name+" without addresses", "", err)
	}
	return nil
}

// OpenWaiting sets both ends up.
func OpenWaiting() error {
	for _, name := range []string{BackDevice, WaitingDevice} {
		l, err := findEnd(name)
		if err != nil {
			return err
		}
		if l == nil {
			return refuse(0, ErrDrift, "%s is gone", name)
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return kernelError(l.Attrs().Index, "set "+name+" up", "", err)
		}
	}
	return nil
}

// RemoveWaiting deletes the pair, with what waits there. Another's devices stay.
func RemoveWaiting() error {
	for _, name := range []string{WaitingDevice, BackDevice} {
		l, err := findEnd(name)
		switch {
		case errors.Is(err, ErrForeign) || err == nil && l == nil:
			continue
		case err != nil:
			return err
		}
		if err := netlink.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
			return kernelError(l.Attrs().Index, "delete "+name, "", err)
		}
	}
	return nil
}

// FindWaiting returns the indices of the two ends, 0 where there is none.
func FindWaiting() (wait, back int, err error) {
	of := map[string]int{}
	for _, name := range []string{WaitingDevice, BackDevice} {
		l, err := findEnd(name)
		if err != nil && !errors.Is(err, ErrForeign) {
			return 0, 0, err
		}
		if err == nil && l != nil {
			of[name] = l.Attrs().Index
		}
	}
	return of[WaitingDevice], of[BackDevice], nil
}

// ReadWaiting says what there is; the zero Waiting is nothing of ours.
func ReadWaiting() (w plan.Waiting, err error) {
	wait, back, err := ends()
	if errors.Is(err, ErrForeign) || err == nil && wait == nil && back == nil {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	for name, l := range map[string]netlink.Link{WaitingDevice: wait, BackDevice: back} {
		switch {
		case l == nil:
			w.Drift = append(w.Drift, name+" is gone")
		case l.Attrs().Flags&net.FlagUp == 0:
			w.Drift = append(w.Drift, name+" is down")
		}
	}
	if wait == nil {
		return w, nil
	}
	c, err := dial()
	if err != nil {
		return w, err
	}
	defer c.close()
	s, err := read(c, wait.Attrs().Index)
	if err != nil {
		return w, err
	}
	w.Queue = s.Queue
	w.Drift = append(w.Drift, s.Drift...)
	if s.Root.Handle != rootHandle {
		w.Drift = append(w.Drift, fmt.Sprintf("%s has no queue of Weir's", WaitingDevice))
	}
	return w, nil
}

// tryWaiting reports whether the kernel can do that, by doing it; ENOENT says that it can not.
func (c *conn) tryWaiting(link int) error {
	want := plan.Queue{Scheduler: "htb", Rate: plan.MinRate, Classes: 1, Leaf: plan.LeafBFIFO, Weighs: true}
	nodes, err := build(want, 0)
	if err != nil {
		return err
	}
	if root, err := c.qdiscs(link); err == nil && !root.root().byKernel() {
		if err := c.send(deleteOp(link, root.root()).message); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if err := c.send(addOp(link, n, false).message); err != nil {
			return err
		}
	}
	s, err := read(c, link)
	if err == nil && (!s.Queue.Equal(want) || len(s.Drift) > 0) {
		err = unix.ENOENT
	}
	return err
}
