package vrf

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// give gives VRFs what is declared of them and is not there. That, and what was in the place of
// a route, is on file before.
func (w *work) give(want map[string]plan.VRF) error {
	addresses, err := w.lackAddresses(want)
	if err != nil {
		return err
	}
	if len(addresses) > 0 {
		if err := w.step("note declared addresses that are not there", func() error { return w.room.save(w.memory) }); err != nil {
			return err
		}
		err := w.step("add declared addresses", func() error {
			for _, a := range addresses {
				if err := addAddress(a); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	routes, err := w.lackRoutes(want) // with those that addresses have brought
	if err != nil || len(routes) == 0 {
		return err
	}
	err = w.step("note declared routes that are not there, and what is in their place", func() error { return w.room.save(w.memory) })
	if err != nil {
		return err
	}
	return w.step("add declared routes", func() error {
		slices.SortStableFunc(routes, func(a, b addedRoute) int { // a gateway is found by routes without one
			return bytes.Compare(gatewayOf(a.Ours), gatewayOf(b.Ours))
		})
		for _, r := range routes {
			if err := r.put(); err != nil {
				return err
			}
		}
		return alone(routes)
	})
}

func gatewayOf(raw []byte) []byte {
	m, err := parse(raw, routeHead)
	if err != nil {
		return nil
	}
	return m.get(unix.RTA_GATEWAY)
}

// lackAddresses are the declared addresses that are not there; they are in memory then.
func (w *work) lackAddresses(want map[string]plan.VRF) (lack []addedAddress, err error) {
	s, err := look()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		for _, a := range declared(name, want[name]).Addresses {
			is := addedAddress{s.indexes[a.Link], a.Prefix}
			if slices.Contains(s.addresses[is.Device], a.Prefix) {
				continue
			}
			lack = append(lack, is)
			if of := w.memory.addedTo(name); !slices.Contains(of.Addresses, is) {
				of.Addresses = append(of.Addresses, is)
			}
		}
	}
	return lack, nil
}

// lackRoutes are the declared routes by which nothing goes; they are in memory then, each with what
// is in its place.
func (w *work) lackRoutes(want map[string]plan.VRF) (lack []addedRoute, err error) {
	s, err := look()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		for _, r := range declared(name, want[name]).Routes {
			m, err := s.ourRoute(r, want[name].Table)
			if err != nil {
				return nil, err
			}
			if s.stands(m) {
				continue
			}
			a, err := w.memory.addedTo(name).note(m, s.inPlace(m))
			if err != nil {
				return nil, fmt.Errorf("vrf %s: route %s: %w", name, r, err)
			}
			lack = append(lack, a)
		}
	}
	return lack, nil
}

// note notes a route that is to be added, and what is in its place. Where it is there itself, others came
// beside it; where it is not, they came after what it replaced before.
func (of *added) note(ours message, inPlace []message) (addedRoute, error) {
	i := slices.IndexFunc(of.Routes, func(r addedRoute) bool { return bytes.Equal(r.Ours, ours.bytes()) })
	known := i >= 0
	var others [][]byte
	there := false
	for _, m := range inPlace {
		switch _, canBe := routeTypes[m.head[7]]; {
		case !canBe && m.head[7] != unix.RTN_THROW:
			return addedRoute{}, errors.New("the kernel has one of its own there, of an address")
		case ours.isRoute(m) || known && ours.isHopOf(m):
			there = true
		default:
			others = append(others, asked(m).bytes())
		}
	}
	if !known {
		i = len(of.Routes)
		of.Routes = append(of.Routes, addedRoute{Ours: ours.bytes()})
	}
	r := &of.Routes[i]
	if !there && len(others) > 0 {
		r.Replaced = nil
	}
	for _, o := range others {
		if !slices.ContainsFunc(r.Replaced, func(known []byte) bool { return bytes.Equal(known, o) }) {
			r.Replaced = append(r.Replaced, o)
		}
	}
	return *r, nil
}

// put puts a route in its place, in one go.
func (r addedRoute) put() error {
	ours, err := parse(r.Ours, routeHead)
	if err != nil {
		return err
	}
	if err := send(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, ours, unix.EEXIST); err != nil {
		return fmt.Errorf("add route %s: %w", words(ours), err)
	}
	return nil
}

// alone takes away what else is in the place of routes: the kernel has replaced one at most.
func alone(routes []addedRoute) error {
	s, err := look()
	if err != nil {
		return err
	}
	for _, r := range routes {
		ours, err := parse(r.Ours, routeHead)
		if err != nil {
			return err
		}
		for _, m := range s.inPlace(ours) {
			if ours.isRoute(m) {
				continue
			}
			if err := deleteRoute(asked(m)); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteRoute takes a route away; one that is gone is fine, with its link or without.
func deleteRoute(m message) error {
	if err := send(unix.RTM_DELROUTE, 0, m, unix.ESRCH, unix.ENOENT, unix.ENODEV, unix.ENETDOWN); err != nil {
		return fmt.Errorf("delete route %s: %w", words(m), err)
	}
	return nil
}
