package vrf

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
)

// undisturbed asks for all of a kind. A change meanwhile makes the kernel's answer incomplete, so
// it is asked again.
func undisturbed[T any](list func() ([]T, error)) (all []T, err error) {
	const attempts = 10
	for range attempts {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return nil, err
}

func listLinks() ([]netlink.Link, error) {
	all, err := undisturbed(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	return all, nil
}

// listAddresses lists those of a link, or with nil of all.
func listAddresses(of netlink.Link, family int) ([]netlink.Addr, error) {
	all, err := undisturbed(func() ([]netlink.Addr, error) { return netlink.AddrList(of, family) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	return all, nil
}
