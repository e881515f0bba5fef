package vrf

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// added is what a policy declares of a VRF and was not there. It is on file before it is
// there, so that nothing else is taken away.
type added struct {
	Addresses []addedAddress `json:"addresses,omitempty"`
	Routes    []addedRoute   `json:"routes,omitempty"`
}

type addedAddress struct {
	Device int          `json:"device"`
	Prefix netip.Prefix `json:"prefix"`
}

type addedRoute struct {
	Ours     []byte   `json:"ours"`
	Replaced [][]byte `json:"replaced,omitempty"` // what was in its place
}

// addedTo is what was added to a VRF, which may be nothing yet.
func (m *memory) addedTo(vrf string) *added {
	if m.Added[vrf] == nil {
		m.Added[vrf] = &added{}
	}
	return m.Added[vrf]
}

// addedAddress reports whether an address of a device was added.
func (m *memory) addedAddress(device int, p netip.Prefix) bool {
	for _, of := range m.Added {
		if slices.Contains(of.Addresses, addedAddress{device, p}) {
			return true
		}
	}
	return false
}

// addedRoute reports whether a route was added, or is there by an address that was.
func (m *memory) addedRoute(r message) bool {
	source, _ := netip.AddrFromSlice(r.get(unix.RTA_PREFSRC))
	for _, of := range m.Added {
		for _, a := range of.Routes {
			if m, err := parse(a.Ours, routeHead); err == nil && tableOf(m) == tableOf(r) && m.isRoute(r) {
				return true
			}
		}
		for _, a := range of.Addresses {
			if a.Prefix.Addr() == source && slices.Contains(linksOf(r), a.Device) {
				return true
			}
		}
	}
	return false
}

// adds reports whether a device has an address that was added.
func (m *memory) adds(device int) bool {
	for _, of := range m.Added {
		if slices.ContainsFunc(of.Addresses, func(a addedAddress) bool { return a.Device == device }) {
			return true
		}
	}
	return false
}

// addAddress gives a device an address. Doubles of it are not looked for: it would be of no
// use for a second.
func addAddress(a addedAddress) error {
	err := netlink.AddrAdd(deviceOf(a.Device), addrOf(a.Prefix))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add %s: %w", a.Prefix, err)
	}
	return nil
}

// deleteAddress takes an address away; one that is gone is fine, with its device or without.
func deleteAddress(a addedAddress) error {
	err := netlink.AddrDel(deviceOf(a.Device), addrOf(a.Prefix))
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete %s: %w", a.Prefix, err)
	}
	return nil
}

func deviceOf(index int) *netlink.Device {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

func addrOf(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

// declared is what of a policy may be declared of a VRF: nothing of links that are not in it.
func declared(name string, v plan.VRF) (d plan.Declared) {
	for _, a := range v.Addresses {
		if a.Link == name || slices.Contains(v.Links, a.Link) {
			d.Addresses = append(d.Addresses, a)
		}
	}
	for _, r := range v.Routes {
		if r.Link == "" || slices.Contains(v.Links, r.Link) {
			d.Routes = append(d.Routes, r)
		}
	}
	return d
}
