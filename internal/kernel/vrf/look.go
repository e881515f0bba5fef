package vrf

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// Look says what the namespace has of routing domains and tables, as far as a policy needs
// to know it.
func (r Room) Look() (plan.Routing, error) {
	f := plan.Routing{
		Ours: map[string]uint32{}, Masters: map[string]string{}, Tables: map[uint32]string{}, Shared: map[string]string{}, Default: map[string]bool{},
		Addresses: map[string][]netip.Prefix{}, OnLink: map[string][]netip.Prefix{}, NoIPv6: len(families()) == 1,
	}
	m, err := r.load()
	if err != nil {
		return f, err
	}
	ours := map[uint32]bool{}
	for name, table := range m.Made {
		f.Ours[name], ours[table] = table, true
	}
	links, err := listLinks()
	if err != nil {
		return f, err
	}
	s, err := look()
	if err != nil {
		return f, err
	}
	use := func(table uint32, by string) {
		if !ours[table] {
			f.Tables[table] = cmp.Or(f.Tables[table], by)
		}
	}
	for _, l := range links {
		a := l.Attrs()
		if v, ok := l.(*netlink.Vrf); ok {
			use(v.Table, "vrf "+a.Name)
		}
		if a.MasterIndex != 0 {
			f.Masters[a.Name] = s.names[a.MasterIndex]
		}
	}
	for _, family := range families() {
		rules, err := listRules(family)
		if err != nil {
			return f, err
		}
		for _, m := range rules {
			if r := ruleOf(m); !r.l3mdev {
				use(r.table, fmt.Sprintf("a rule of priority %d", r.priority))
			}
		}
	}
	for _, table := range slices.Sorted(maps.Keys(s.routes)) {
		use(table, "routes")
		for _, r := range s.routes[table] {
			note(&f, r, s.names, ours, m.addedRoute(r))
		}
	}
	for index, name := range s.names {
		f.Addresses[name] = slices.DeleteFunc(s.addresses[index], func(p netip.Prefix) bool { return m.addedAddress(index, p) })
		f.OnLink[name] = append(f.OnLink[name], s.peers[index]...)
	}
	return f, nil
}

// note notes a route of several devices, a default route, and what is reached without a gateway.
func note(f *plan.Routing, m message, names map[int]string, ours map[uint32]bool, added bool) {
	if !carried(m) {
		return
	}
	var devices []string
	for _, index := range linksOf(m) {
		if name := names[index]; !slices.Contains(devices, name) {
			devices = append(devices, name)
		}
	}
	table := tableOf(m)
	counts := table == unix.RT_TABLE_MAIN || ours[table]
	if to, ok := destination(m); ok && counts && !added && m.get(unix.RTA_OIF) != nil && m.get(unix.RTA_GATEWAY) == nil && m.get(unix.RTA_VIA) == nil {
		f.OnLink[devices[0]] = append(f.OnLink[devices[0]], to)
	}
	for _, name := range devices {
		if len(devices) > 1 {
			f.Shared[name] = cmp.Or(f.Shared[name], words(m)+" by "+strings.Join(devices, " and "))
		}
		if m.head[1] == 0 && counts {
			f.Default[name] = f.Default[name] || !added
		}
	}
}
