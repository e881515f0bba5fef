package tc

import (
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

var (
	waitEnd = ownDevice{name: WaitingDevice, kind: "veth", address: ownAddress(1)}
	backEnd = ownDevice{name: BackDevice, kind: "veth", address: ownAddress(1)}
)

// ends finds both; either may be nil.
func ends() (wait, back netlink.Link, err error) {
	if wait, err = waitEnd.find(); err == nil {
		back, err = backEnd.find()
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
		err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: waitEnd.attrs(), PeerName: BackDevice, PeerHardwareAddr: backEnd.address})
		if err != nil {
			err = kernelError(0, "add "+WaitingDevice, "veth device", err)
		}
	}
	if err != nil {
		return err
	}
	for _, end := range []ownDevice{waitEnd, backEnd} {
		if _, err := end.dress("where acknowledgements wait, held to a rate by weir"); err != nil {
			return err
		}
	}
	return nil
}

// OpenWaiting sets both ends up.
func OpenWaiting() error {
	_, err := backEnd.up()
	if err == nil {
		_, err = waitEnd.up()
	}
	return err
}

// RemoveWaiting deletes the pair, with what waits there. Another's devices stay.
func RemoveWaiting() error {
	if err := waitEnd.remove(); err != nil {
		return err
	}
	return backEnd.remove() // where somebody has moved the other one away
}

// FindWaiting returns the indices of the two ends, 0 where there is none.
func FindWaiting() (wait, back int, err error) {
	if wait, err = waitEnd.index(); err == nil {
		back, err = backEnd.index()
	}
	return wait, back, err
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
