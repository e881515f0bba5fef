package vrf

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// left is what was added to VRFs and is not declared any more.
func (w *work) left(want map[string]plan.VRF, s *scene) (map[string]added, error) {
	all := map[string]added{}
	for name, of := range w.memory.Added {
		shall, left := declared(name, want[name]), added{}
		for _, a := range of.Addresses {
			if !slices.Contains(shall.Addresses, plan.DeclaredAddress{Link: s.names[a.Device], Prefix: a.Prefix}) {
				left.Addresses = append(left.Addresses, a)
			}
		}
		for _, a := range of.Routes {
			m, err := parse(a.Ours, routeHead)
			if err != nil {
				return nil, err
			}
			if r, ok := s.routeOf(m); !ok || !slices.Contains(shall.Routes, r) || tableOf(m) != want[name].Table {
				left.Routes = append(left.Routes, a)
			}
		}
		all[name] = left
	}
	return all, nil
}

// forget takes out of memory what is not there any more.
func (of *added) forget(gone added) {
	of.Addresses = slices.DeleteFunc(of.Addresses, func(a addedAddress) bool { return slices.Contains(gone.Addresses, a) })
	of.Routes = slices.DeleteFunc(of.Routes, func(a addedRoute) bool {
		return slices.ContainsFunc(gone.Routes, func(g addedRoute) bool { return bytes.Equal(a.Ours, g.Ours) })
	})
}

// take takes away what was added and is not declared any more, and puts back what routes replaced. Addresses of
// IPv4 of links it leaves and returns by their VRFs: with one of those the kernel may take others, and all routes.
func (w *work) take(want map[string]plan.VRF) (later map[string]added, err error) {
	s, err := look()
	if err != nil {
		return nil, err
	}
	now, err := w.left(want, s)
	if err != nil {
		return nil, err
	}
	later, any := map[string]added{}, false
	for name, left := range now {
		wait := slices.DeleteFunc(slices.Clone(left.Addresses), func(a addedAddress) bool {
			_, own := w.memory.Made[s.names[a.Device]]
			return a.Prefix.Addr().Is6() || own || s.names[a.Device] == ""
		})
		left.Addresses = slices.DeleteFunc(left.Addresses, func(a addedAddress) bool { return slices.Contains(wait, a) })
		if now[name] = left; len(wait) > 0 {
			later[name] = added{Addresses: wait}
		}
		any = any || len(left.Addresses)+len(left.Routes) > 0
	}
	if !any {
		return later, nil
	}
	return later, w.step("take away what is not declared any more", func() error {
		for _, name := range slices.Sorted(maps.Keys(now)) {
			for _, r := range now[name].Routes {
				if err := w.takeRoute(name, r, s); err != nil {
					return err
				}
			}
		}
		return w.takeAddresses(now)
	})
}

// takeAddresses takes addresses away, and forgets all that is gone by then.
func (w *work) takeAddresses(gone map[string]added) error {
	for name, left := range gone {
		for _, a := range left.Addresses {
			if err := deleteAddress(a); err != nil {
				return err
			}
		}
		w.memory.addedTo(name).forget(left)
	}
	return w.room.save(w.memory)
}

// takeRoute takes a route away. What it replaced goes back in its place, unless somebody else has put something
// there; of a link that is on its way it joins its luggage.
func (w *work) takeRoute(vrf string, r addedRoute, s *scene) error {
	ours, err := parse(r.Ours, routeHead)
	if err != nil {
		return err
	}
	if err := deleteRoute(ours); err != nil {
		return err
	}
	isReplaced := func(m message) bool {
		return slices.ContainsFunc(r.Replaced, func(raw []byte) bool { return bytes.Equal(raw, asked(m).bytes()) })
	}
	if slices.ContainsFunc(s.inPlace(ours), func(m message) bool { return !ours.isRoute(m) && !isReplaced(m) }) {
		return nil
	}
	for _, raw := range r.Replaced {
		m, err := parse(raw, routeHead)
		if err != nil {
			return err
		}
		links := linksOf(m)
		if l := w.memory.Moving; l != nil && slices.ContainsFunc(links, l.has) {
			l.add(m, tableOf(ours))
			continue
		}
		if len(links) > 0 && m.head[7] == unix.RTN_UNICAST && s.names[s.masters[links[0]]] != vrf {
			m = inTable(m, mainTable) // others have taken it out of the VRF
		}
		// What has become impossible meanwhile would be gone without us, too.
		err = send(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, m, unix.EEXIST, unix.ENODEV, unix.ENETDOWN, unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EINVAL)
		if err != nil {
			return fmt.Errorf("put back route %s: %w", words(m), err)
		}
	}
	return nil
}

// add adds a route of a table to luggage, as if its link had had it when it set out.
func (l *luggage) add(m message, table uint32) {
	for _, link := range linksOf(m) {
		if l.has(link) && tableOf(m) == table {
			m = inTable(m, l.From[link])
			break
		}
	}
	if !slices.ContainsFunc(l.Routes, func(raw []byte) bool { return bytes.Equal(raw, m.bytes()) }) {
		l.Routes = append(l.Routes, m.bytes())
	}
}
