package vrf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// A place is where a link is, and where it shall be: the names of VRFs, "" for none.
type place struct {
	name   string // of the link
	is     string
	shall  string
	master int // index of what it is enslaved to
}

// move brings all links to where they shall be, and takes from them what is not declared any more.
func (w *work) move(want map[string]plan.VRF) error {
	gone, err := w.take(want)
	if err != nil {
		return err
	}
	places, err := w.places(want)
	if err != nil {
		return err
	}
	from := map[int]uint32{}
	for index, p := range places {
		if p.is != p.shall {
			from[index] = w.tableOf(p.is)
		}
	}
	for _, left := range gone {
		for _, a := range left.Addresses {
			from[a.Device] = w.tableOf(places[a.Device].is)
		}
	}
	if l := w.memory.Moving; l != nil { // somebody was cut off: what these links had is known from then
		maps.DeleteFunc(from, func(index int, _ uint32) bool { return l.has(index) })
	}
	if err := w.pack(from, places); err != nil {
		return err
	}
	if len(gone) > 0 {
		if err := w.step("take away addresses that are not declared any more", func() error { return w.takeAddresses(gone) }); err != nil {
			return err
		}
	}
	if w.memory.Moving == nil {
		return nil
	}
	return w.carry(places, w.memory.Moving)
}

// pack puts on file what links have that set out now.
func (w *work) pack(from map[int]uint32, places map[int]place) error {
	if len(from) == 0 {
		return nil
	}
	var names []string
	for index := range from {
		names = append(names, places[index].name)
	}
	slices.Sort(names)
	return w.step("remember addresses, routes and neighbours of "+strings.Join(names, ", "), func() error {
		l, err := pack(from, w.memory)
		if err != nil {
			return err
		}
		for index := range from {
			if l.AcceptDAD[index], err = readSysctl(acceptDAD(places[index].name)); err != nil {
				l.AcceptDAD[index] = "" // no IPv6
			}
			if p := places[index]; p.shall != "" {
				w.memory.Placed[index] = p.shall
			}
		}
		if w.memory.Moving == nil {
			w.memory.Moving = l
		} else {
			w.memory.Moving.merge(l)
		}
		return w.room.save(w.memory)
	})
}

// tableOf is the table by which a link goes that is in a VRF, or in none.
func (w *work) tableOf(vrf string) uint32 {
	return cmp.Or(w.memory.Made[vrf], mainTable)
}

// places says of all links that are ours to move where they are. Those that are gone are
// forgotten.
func (w *work) places(want map[string]plan.VRF) (map[int]place, error) {
	all, err := listLinks()
	if err != nil {
		return nil, err
	}
	names, shall := map[int]string{}, map[string]string{}
	for _, l := range all {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	for name, v := range want {
		for _, link := range v.Links {
			shall[link] = name
		}
	}
	places := map[int]place{}
	for _, l := range all {
		a := l.Attrs()
		p := place{name: a.Name, shall: shall[a.Name], master: a.MasterIndex}
		if master := names[a.MasterIndex]; a.MasterIndex != 0 {
			if _, ours := w.memory.Made[master]; ours {
				p.is = master
			}
		}
		_, placed := w.memory.Placed[a.Index]
		_, vrf := w.memory.Made[a.Name]
		if p.shall != "" || placed && p.is != "" || w.memory.Moving != nil && w.memory.Moving.has(a.Index) || w.memory.adds(a.Index) && !vrf {
			places[a.Index] = p
		}
		delete(shall, a.Name)
	}
	for link := range shall {
		return nil, fmt.Errorf("move %s into vrf %s: no such link", link, shall[link])
	}
	maps.DeleteFunc(w.memory.Placed, func(index int, _ string) bool { return names[index] == "" })
	return places, nil
}

// carry moves the links that luggage is of, each in one go with all that it had, and forgets.
func (w *work) carry(places map[int]place, l *luggage) error {
	to := map[int]uint32{}
	links := slices.Sorted(maps.Keys(l.From))
	for _, index := range links {
		to[index] = w.tableOf(places[index].shall)
	}
	for _, index := range links {
		p, there := places[index]
		if !there {
			continue
		}
		what := "move " + p.name + " into vrf " + p.shall
		if p.shall == "" {
			what = "move " + p.name + " out of vrf " + p.is
		}
		err := w.step(what, func() error { return w.enslave(index, p, l, to[index]) })
		if err != nil {
			return err
		}
		p.is = p.shall
		places[index] = p
	}
	if err := l.unpack(to, w.step); err != nil {
		return err
	}
	return w.step("forget what moved links had", func() error {
		if err := settled(l); err != nil {
			return err
		}
		for _, index := range links {
			p, there := places[index]
			if there && l.AcceptDAD[index] != "" {
				if err := writeSysctl(acceptDAD(p.name), l.AcceptDAD[index]); err != nil {
					return err
				}
			}
			if !there || p.shall == "" {
				delete(w.memory.Placed, index)
			}
		}
		w.memory.Moving = nil
		return w.room.save(w.memory)
	})
}

// enslave moves one link, and has what comes from its addresses follow.
func (w *work) enslave(index int, p place, l *luggage, to uint32) error {
	if err := w.follow(index, l, to); err != nil {
		return err
	}
	if p.is == p.shall {
		return nil
	}
	if l.AcceptDAD[index] != "" { // else an address that comes back is of no use for a second
		if err := writeSysctl(acceptDAD(p.name), "0"); err != nil {
			return err
		}
	}
	link := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: p.name, Index: index}}
	if p.shall == "" {
		return netlink.LinkSetNoMaster(link)
	}
	v, err := device(p.shall)
	if err != nil {
		return err
	}
	if v == nil {
		return errors.New("the vrf is gone")
	}
	return netlink.LinkSetMasterByIndex(link, v.Attrs().Index)
}

// settled returns when the kernel has seen that no doubles of the links' addresses are to be
// looked for, which it does in a worker of its own. Of a link without carrier it sees that later.
func settled(l *luggage) error {
	for begin := time.Now(); time.Since(begin) < 200*time.Millisecond; time.Sleep(time.Millisecond) {
		all, err := listAddresses(nil, netlink.FAMILY_V6)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(a netlink.Addr) bool { return l.has(a.LinkIndex) && a.Flags&unix.IFA_F_TENTATIVE != 0 }) {
			return nil
		}
	}
	return nil
}

func acceptDAD(link string) string { return "net/ipv6/conf/" + link + "/accept_dad" }

// follow sends what comes from a link's addresses by the table that the link goes to:
// sockets of connections that are open are bound to no VRF. An address that another link has
// too tells nothing. In the main table all that needs no rule.
func (w *work) follow(index int, l *luggage, to uint32) error {
	m := w.memory
	addresses, err := l.addresses(index)
	if err != nil {
		return err
	}
	err = w.dropSources(func(s source) bool { return s.Table != to && slices.Contains(addresses, s.Address) })
	if err != nil || to == mainTable {
		return err
	}
	elsewhere, err := addressesBut(l)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		s := source{a, to}
		if elsewhere[a] || slices.Contains(m.Sources, s) {
			continue
		}
		m.Sources = append(m.Sources, s)
	}
	if err := w.room.save(m); err != nil {
		return err
	}
	for _, s := range m.Sources {
		if err := addRule(sourceRule(s)); err != nil {
			return fmt.Errorf("add a rule for %s: %w", s.Address, err)
		}
	}
	return nil
}

// dropSources takes some rules of addresses away.
func (w *work) dropSources(some func(source) bool) error {
	m := w.memory
	for _, s := range m.Sources {
		if !some(s) {
			continue
		}
		if err := deleteRule(sourceRule(s)); err != nil {
			return fmt.Errorf("delete the rule for %s: %w", s.Address, err)
		}
	}
	m.Sources = slices.DeleteFunc(m.Sources, some)
	return w.room.save(m)
}

// addressesBut are the addresses of all devices but those that move.
func addressesBut(l *luggage) (map[netip.Addr]bool, error) {
	all, err := listAddresses(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	others := map[netip.Addr]bool{}
	for _, a := range all {
		if ip, ok := netip.AddrFromSlice(a.IP); ok && !l.has(a.LinkIndex) {
			others[ip.Unmap()] = true
		}
	}
	return others, nil
}
