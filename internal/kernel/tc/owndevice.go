package tc

import (
	"bytes"
	"errors"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// An ownDevice is one that Weir makes, or has made.
type ownDevice struct {
	name, kind string
	address    net.HardwareAddr // how it is known: unlike an alias it is there from its first moment on
	beside     int              // the link that it serves, which errors tell of; 0: all of them
}

// ownAddress is a local address that spells "weir", and what for.
func ownAddress(use byte) net.HardwareAddr { return net.HardwareAddr{2, 'w', 'e', 'i', 'r', use} }

// noAddresses is IN6_ADDR_GEN_MODE_NONE: a device that has an address of IPv6 asks for routers.
const noAddresses = 1

// find finds the device, nil if there is none. One of that name that is not ours is an error that
// wraps [ErrForeign].
func (d ownDevice) find() (netlink.Link, error) {
	l, err := netlink.LinkByName(d.name)
	if _, none := errors.AsType[netlink.LinkNotFoundError](err); none {
		return nil, nil
	}
	if err != nil {
		return nil, kernelError(d.beside, "find "+d.name, "", err)
	}
	if l.Type() != d.kind || !bytes.Equal(l.Attrs().HardwareAddr, d.address) {
		return nil, refuse(d.beside, ErrForeign, "the device %s is not Weir's, and has the name of one that Weir needs: give it another name", d.name)
	}
	return l, nil
}

// index is that of the device, 0 if there is none of ours.
func (d ownDevice) index() (int, error) {
	l, err := d.find()
	if l == nil || err != nil {
		if errors.Is(err, ErrForeign) {
			return 0, nil
		}
		return 0, err
	}
	return l.Attrs().Index, nil
}

// attrs are what the device begins with.
func (d ownDevice) attrs() netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = d.name, d.address
	return attrs
}

// dress tells people what a device that was just made is for, keeps it quiet, and returns its index.
func (d ownDevice) dress(use string) (index int, err error) {
	l, err := d.find()
	if err != nil {
		return 0, err
	}
	if l == nil {
		return 0, refuse(d.beside, ErrDrift, "%s went away as soon as it was made", d.name)
	}
	if err := netlink.LinkSetAlias(l, use); err != nil {
		return 0, kernelError(d.beside, "name the use of "+d.name, "", err)
	}
	err = netlink.LinkSetIP6AddrGenMode(l, noAddresses)
	if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) { // a host without IPv6
		return 0, kernelError(d.beside, "keep "+d.name+" without addresses", "", err)
	}
	return l.Attrs().Index, nil
}

// up sets the device up, and returns its index.
func (d ownDevice) up() (index int, err error) {
	l, err := d.find()
	if err != nil {
		return 0, err
	}
	if l == nil {
		return 0, refuse(d.beside, ErrDrift, "%s is gone", d.name)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return 0, kernelError(d.beside, "set "+d.name+" up", "", err)
	}
	return l.Attrs().Index, nil
}

// remove deletes the device, with what waits in it. Another's stays.
func (d ownDevice) remove() error {
	l, err := d.find()
	if l == nil || err != nil {
		if errors.Is(err, ErrForeign) {
			return nil
		}
		return err
	}
	if err := netlink.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
		return kernelError(d.beside, "delete "+d.name, "", err)
	}
	return nil
}
