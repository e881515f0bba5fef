package policy

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// A VRF is a routing domain of its own: a device that stands for a table of routes, and
// the links whose packets go by that table.
type VRF struct {
	Name  string // of the device too
	Table uint32 // 0: one that is free
	Links []VRFLink
	Span  Span // of the name

	Addresses []VRFAddress // of its own device, beside the loopback's
	Routes    []VRFRoute

	// TableSpan is where the table stands; zero where the file leaves it out.
	TableSpan Span
}

// A VRFLink is a link that moves into a VRF, with its addresses, routes and neighbours.
type VRFLink struct {
	Name      string
	Addresses []VRFAddress
	Span      Span
}

// LinkNames are the links that move into it, sorted.
func (v VRF) LinkNames() []string {
	names := make([]string, 0, len(v.Links))
	for _, l := range v.Links {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return names
}

type rawVRF struct {
	name, table scalar
	links       []rawVRFLink
	addresses   []scalar
	routes      []rawVRFRoute
}

var vrfKeys = [...]string{"table", "links", "addresses", "routes"}

func (r *reader) rawVRF(e entry) rawVRF {
	raw := rawVRF{name: e.key}
	what := "vrf " + quote(e.key.text)
	if !r.filled(e.key, e.value, what) {
		return raw
	}
	r.record(e.value, what, vrfKeys[:], func(name string, key scalar, n *yaml.Node) {
		switch name {
		case "table":
			raw.table = r.value(key, n, "table")
		case "links":
			raw.links = r.rawVRFLinks(key, n)
		case "addresses":
			raw.addresses = r.addressList(key, n)
		case "routes":
			raw.routes = r.rawVRFRoutes(key, n)
		}
	})
	return raw
}

// vrfs reads all VRFs. A link is in one of them at most, and each has a table of its own.
func (m *meaning) vrfs(entries []entry) []VRF {
	var all []VRF
	m.domains = map[string]bool{}
	tables, links := map[uint32]Span{}, map[string]Span{}
	for _, e := range entries {
		v := m.vrf(m.rawVRF(e), links)
		if e.twice {
			continue
		}
		if first, twice := tables[v.Table]; twice && v.Table != 0 {
			m.report(v.TableSpan, "table "+strconv.FormatUint(uint64(v.Table), 10)+" is that of another VRF", "",
				Related{first, "first here"})
		} else {
			tables[v.Table] = v.TableSpan
		}
		m.domains[v.Name] = true
		all = append(all, v)
	}
	for _, v := range all {
		if at, there := links[v.Name]; there {
			m.report(at, "link "+quote(v.Name)+" has the name of a VRF, whose device Weir makes", "", Related{v.Span, "that one"})
		}
	}
	slices.SortFunc(all, func(a, b VRF) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// vrf reads one VRF and notes its links.
func (m *meaning) vrf(raw rawVRF, links map[string]Span) VRF {
	v := VRF{Name: raw.name.text, Span: raw.name.span}
	m.refuse(v.Span, CheckLinkName(v.Name))
	if m.unquoted(raw.table, "table") {
		v.TableSpan = raw.table.span
		var err error
		v.Table, err = parseTable(raw.table.text)
		m.refuse(raw.table.span, err)
	}
	seen := map[netip.Addr]Span{}
	v.Addresses = m.vrfAddresses(raw.addresses, true, seen)
	for _, raw := range raw.links {
		l := raw.name
		if !l.given() {
			continue
		}
		m.refuse(l.span, CheckLinkName(l.text))
		if first, twice := links[l.text]; twice {
			m.report(l.span, "link "+quote(l.text)+" is in a VRF already", "", Related{first, "first here"})
			continue
		}
		if l.text == "lo" {
			m.report(l.span, "lo can not move into a VRF", "the VRF's own device is its loopback")
		}
		links[l.text] = l.span
		v.Links = append(v.Links, VRFLink{l.text, m.vrfAddresses(raw.addresses, false, seen), l.span})
	}
	m.vrfRoutes(raw.routes, &v, seen)
	return v
}

// parseTable reads the number of a table of routes. The error is a *ValueError.
func parseTable(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	switch {
	case err != nil || strconv.FormatUint(n, 10) != s:
		return 0, &ValueError{"table " + quote(s) + " is no number of a table", "1 to 4294967295, as in table: 1000; left out it is one that is free"}
	case n == 0 || n >= 253 && n <= 255:
		return 0, &ValueError{"table " + s + " is one of the kernel's own", "take another, as in table: 1000, or leave it out for one that is free"}
	}
	return uint32(n), nil
}

// vrfOf reads to which VRF the sockets of a workload are bound.
func (m *meaning) vrfOf(s scalar, via Via) string {
	if !s.given() {
		return ""
	}
	if via == ViaNetPrio {
		m.report(s.span, "net_prio carries priorities only, and no vrf", "leave via out")
	}
	if !m.domains[s.text] && !m.domainsOpen {
		help := "declare it: vrfs: {" + quoteless(s.text) + ": {links: [eth0]}}"
		m.report(s.span, "vrf "+quote(s.text)+" is not declared", DidYouMean(s.text, sortedNames(m.domains), help))
	}
	return s.text
}

func sortedNames(of map[string]bool) (names []string) {
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
