package tc

import (
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

// DetourName names the device of ours beside a link.
func DetourName(link int) string { return fmt.Sprintf("weir%d", link) }

// detourOf is the device of ours beside a link.
func detourOf(link int) ownDevice {
	return ownDevice{name: DetourName(link), kind: "ifb", address: ownAddress(0), beside: link}
}

// CheckDetour returns an error that wraps [ErrForeign] where another's device has the name of
// ours beside the link.
func CheckDetour(link int) error {
	_, err := detourOf(link).find()
	return err
}

// MakeDetour makes the device beside a link unless it is there, and returns its index. It
// is down, and has no queue of ours yet. of is the name of the link, for people to read.
func MakeDetour(link int, of string) (index int, err error) {
	d := detourOf(link)
	l, err := d.find()
	if err != nil {
		return 0, err
	}
	if l == nil {
		if err := netlink.LinkAdd(&netlink.Ifb{LinkAttrs: d.attrs()}); err != nil {
			return 0, kernelError(link, "add "+d.name, "ifb device", err)
		}
	}
	return d.dress("what arrives by " + of + ", held to a rate by weir")
}

// OpenDetour sends what arrives by a link over the device beside it, which it sets up.
// That device has to have its queue.
func OpenDetour(link int) error {
	at, err := detourOf(link).up()
	if err != nil {
		return err
	}
	return Redirect(link, at)
}

// RemoveDetour deletes the device of ours beside a link, with what waits in it. That link
// itself may be gone. Another's device stays.
func RemoveDetour(link int) error { return detourOf(link).remove() }

// FindDetour returns the index of the device of ours beside a link, 0 if there is none.
func FindDetour(link int) (int, error) { return detourOf(link).index() }

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
	l, err := detourOf(link).find()
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
