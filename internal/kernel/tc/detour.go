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

// A detour is the way of what arrives by a link, over an ifb: a device that has a queue
// at its egress, and hands what has passed it back to where it arrived, behind the
// filters there.

const detourKind = "ifb"

// detourAddress is that of each of our devices, and how they are known: unlike an alias
// it is there from their first moment on. It is a local one, and spells "weir".
func detourAddress() net.HardwareAddr { return net.HardwareAddr{2, 'w', 'e', 'i', 'r', 0} }

// noAddresses is IN6_ADDR_GEN_MODE_NONE: a device that has an address of IPv6 asks for routers.
const noAddresses = 1

// DetourName names the device of ours beside a link.
func DetourName(link int) string { return fmt.Sprintf("weir%d", link) }

// findDetour finds the device of ours beside a link, nil if there is none. One of
// that name that is not ours is an error that wraps [ErrForeign].
func findDetour(link int) (netlink.Link, error) {
	l, err := netlink.LinkByName(DetourName(link))
	if _, none := errors.AsType[netlink.LinkNotFoundError](err); none {
		return nil, nil
	}
	if err != nil {
		return nil, kernelError(link, "find "+DetourName(link), "", err)
	}
	if l.Type() != detourKind || !bytes.Equal(l.Attrs().HardwareAddr, detourAddress()) {
		return nil, refuse(link, ErrForeign, "the device %s is not Weir's, and has the name of the one that Weir needs: give it another name", DetourName(link))
	}
	return l, nil
}

// CheckDetour returns an error that wraps [ErrForeign] where another's device has the name of
// ours beside the link.
func CheckDetour(link int) error {
	_, err := findDetour(link)
	return err
}

// MakeDetour makes the device beside a link unless it is there, and returns its index. It
// is down, and has no queue of ours yet. of is the name of the link, for people to read.
func MakeDetour(link int, of string) (index int, err error) {
	l, err := findDetour(link)
	if err == nil && l == nil {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.HardwareAddr = DetourName(link), detourAddress()
		if err := netlink.LinkAdd(&netlink.Ifb{LinkAttrs: attrs}); err != nil {
			return 0, kernelError(link, "add "+attrs.Name, "ifb device", err)
		}
		l, err = findDetour(link)
	}
	switch {
	case err != nil:
		return 0, err
	case l == nil:
		return 0, refuse(link, ErrDrift, "%s went away as soon as it was made", DetourName(link))
	}
	if err := netlink.LinkSetAlias(l, "what arrives by "+of+", held to a rate by weir"); err != nil {
		return 0, kernelError(link, "name the use of "+DetourName(link), "", err)
	}
	err = netlink.LinkSetIP6AddrGenMode(l, noAddresses)
	if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) { // a host without IPv6
		return 0, kernelError(link, "keep "+DetourName(link)+" without addresses", "", err)
	}
	return l.Attrs().Index, nil
}

// OpenDetour sends what arrives by a link over the device beside it, which it sets up.
// That device has to have its queue.
func OpenDetour(link int) error {
	l, err := findDetour(link)
	if err != nil {
		return err
	}
	if l == nil {
		return refuse(link, ErrDrift, "%s is gone", DetourName(link))
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return kernelError(link, "set "+DetourName(link)+" up", "", err)
	}
	return Redirect(link, l.Attrs().Index)
}

// RemoveDetour deletes the device of ours beside a link, with what waits in it. That link
// itself may be gone. Another's device stays.
func RemoveDetour(link int) error {
	l, err := findDetour(link)
	if l == nil || err != nil {
		if errors.Is(err, ErrForeign) {
			return nil
		}
		return err
	}
	if err := netlink.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
		return kernelError(link, "delete "+DetourName(link), "", err)
	}
	return nil
}

// FindDetour returns the index of the device of ours beside a link, 0 if there is none.
func FindDetour(link int) (int, error) {
	l, err := findDetour(link)
	if l == nil || err != nil {
		if errors.Is(err, ErrForeign) {
			return 0, nil
		}
		return 0, err
	}
	return l.Attrs().Index, nil
}

// ReadDetour says which way there is for what arrives by a link; the zero Detour is none
// of ours.
func ReadDetour(link int) (d plan.Detour, err error) {
	c, err := dial()
	if err != nil {
		return d, err
	}
	defer c.close()
	filters, err := c.redirects(link)
	if err != nil {
		return d, err
	}
	l, err := findDetour(link)
	if err != nil && !errors.Is(err, ErrForeign) {
		return d, err
	}
	name := DetourName(link)
	if l == nil {
		if len(filters) > 0 {
			d.Drift = []string{name + " is gone, so nothing arrives"}
		}
		return d, nil
	}
	s, err := read(c, l.Attrs().Index)
	if err != nil {
		return d, err
	}
	d.Queue, d.Drift = s.Queue, s.Drift
	if s.Root.Handle != rootHandle {
		d.Drift = append(d.Drift, fmt.Sprintf("%s has no queue of Weir's", name))
	}
	if l.Attrs().Flags&net.FlagUp == 0 {
		d.Drift = append(d.Drift, name+" is down")
	}
	switch {
	case len(filters) == 0:
		d.Drift = append(d.Drift, "nothing is sent over "+name)
	case len(filters) > 1:
		d.Drift = append(d.Drift, fmt.Sprintf("%d filters send packets over %s", len(filters), name))
	case filters[0].to != l.Attrs().Index:
		d.Drift = append(d.Drift, "the filter that sends packets over "+name+" is not as Weir builds it")
	}
	return d, nil
}

// ProbeDetour reports whether this kernel can do what [OpenDetour] asks for, by doing it in
// a throw-away namespace. Where ifb is a module that is not loaded yet, the kernel
// loads it, and makes ifb0 and ifb1 with that in the first namespace of the host: it
// is tried only where somebody asks for it.
func ProbeDetour() (has bool, err error) {
	done := make(chan error)
	go onOwnThread(done, func() error {
		c, link, err := probeAlone()
		if err != nil {
			return err
		}
		defer c.close()
		return c.tryDetour(link)
	})
	err = <-done
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil, err
}

// tryDetour makes a device beside a link and sends what arrives there; ENOENT says that
// the kernel can not.
func (c *conn) tryDetour(link int) error {
	to, err := MakeDetour(link, "a probe")
	if err == nil {
		err = c.addRedirect(link, to)
	}
	if errors.Is(err, ErrUnsupported) {
		return unix.ENOENT
	}
	return err
}
