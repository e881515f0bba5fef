package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// Declared is what a VRF has beside what its links bring.
type Declared struct {
	Addresses []DeclaredAddress
	Routes    []DeclaredRoute
}

// A DeclaredAddress is one of a link in a VRF, or of the VRF's own device.
type DeclaredAddress struct {
	Link   string
	Prefix netip.Prefix // the address, with the length of its network
}

// String puts an address into words: "192.0.2.7/24 on eth0".
func (a DeclaredAddress) String() string { return a.Prefix.String() + " on " + a.Link }

// A DeclaredRoute is one of a VRF's table.
type DeclaredRoute struct {
	To     netip.Prefix
	Via    netip.Addr // the zero Addr: no gateway
	Link   string     // "" where packets go nowhere
	Metric uint32
	Type   policy.RouteType
}

// metricOfIPv6 is what the kernel gives a route of IPv6 that names none.
const metricOfIPv6 = 1024

// String puts a route into words: "default via 192.0.2.1 dev eth0".
func (r DeclaredRoute) String() string {
	text := r.To.String()
	if r.To.Bits() == 0 {
		text = "default"
		if !r.Via.IsValid() && r.To.Addr().Is6() {
			text = "default (IPv6)"
		}
	}
	if r.Type != policy.Unicast {
		text = string(r.Type) + " " + text
	}
	if r.Via.IsValid() {
		text += " via " + r.Via.String()
	}
	if r.Link != "" {
		text += " dev " + r.Link
	}
	if r.Metric != 0 && (r.To.Addr().Is4() || r.Metric != metricOfIPv6) {
		text += fmt.Sprintf(" metric %d", r.Metric)
	}
	return text
}

// words are all that is declared, each in words.
func (d Declared) words() (words []string) {
	for _, a := range d.Addresses {
		words = append(words, a.String())
	}
	for _, r := range d.Routes {
		words = append(words, r.String())
	}
	return words
}

// but is what is not in other.
func (d Declared) but(other Declared) (rest Declared) {
	for _, a := range d.Addresses {
		if !slices.Contains(other.Addresses, a) {
			rest.Addresses = append(rest.Addresses, a)
		}
	}
	for _, r := range d.Routes {
		if !slices.Contains(other.Routes, r) {
			rest.Routes = append(rest.Routes, r)
		}
	}
	return rest
}

// defaults reports whether there is a default route.
func (d Declared) defaults() bool {
	return slices.ContainsFunc(d.Routes, func(r DeclaredRoute) bool { return r.To.Bits() == 0 })
}

// Staying is a VRF as it is, with what of that Weir has added, but without some links: as one
// stays that is about to go.
func (v VRF) Staying(without map[string]bool) VRF {
	v.Links = slices.DeleteFunc(slices.Clone(v.Links), func(l string) bool { return without[l] })
	v.Declared = v.Added.but(v.Added.but(v.Declared))
	return v
}

// declaredOf is what a policy declares of a VRF on this host.
func declaredOf(v policy.VRF, f Facts) (d Declared) {
	for _, a := range v.Addresses {
		d.Addresses = append(d.Addresses, DeclaredAddress{v.Name, a.Prefix})
	}
	for _, l := range v.Links {
		for _, a := range l.Addresses {
			d.Addresses = append(d.Addresses, DeclaredAddress{l.Name, a.Prefix})
		}
	}
	for _, r := range v.Routes {
		link := r.Link
		if on := f.Routing.carriers(v, r.Via); link == "" && len(on) > 0 {
			link = on[0]
		}
		d.Routes = append(d.Routes, DeclaredRoute{r.To, r.Via, link, r.Metric, r.Type})
	}
	return d
}

// carriers are the links of a VRF on which a gateway is: those that have it in the smallest network, and
// are several only where these are of one size.
func (f Routing) carriers(v policy.VRF, via netip.Addr) (links []string) {
	best := -1
	note := func(link string, p netip.Prefix) {
		switch {
		case !p.Masked().Contains(via):
		case p.Bits() > best:
			best, links = p.Bits(), []string{link}
		case p.Bits() == best && !slices.Contains(links, link):
			links = append(links, link)
		}
	}
	for _, l := range v.Links {
		networks := slices.Clone(f.Addresses[l.Name])
		for _, a := range l.Addresses {
			networks = append(networks, a.Prefix)
		}
		networks = slices.DeleteFunc(networks, netip.Prefix.IsSingleIP) // in which nobody else is
		for _, p := range slices.Concat(networks, f.OnLink[l.Name]) {
			note(l.Name, p)
		}
	}
	for _, r := range v.Routes {
		if r.Link != "" && !r.Via.IsValid() {
			note(r.Link, r.To)
		}
	}
	return links
}

// checkDeclared holds what is declared of a VRF against the host.
func checkDeclared(object string, v policy.VRF, f Facts, add addFunc) {
	no6 := func(at policy.Span, a netip.Addr) {
		if f.Routing.NoIPv6 && a.Is6() {
			add(at, "sysctl net.ipv6.conf.all.disable_ipv6 says why", "%s: no IPv6 here", object)
		}
	}
	for _, a := range v.Addresses {
		no6(a.Span, a.Prefix.Addr())
	}
	missing := false
	for _, l := range v.Links {
		if _, there := f.Links[l.Name]; !there {
			missing = true
		}
		for _, a := range l.Addresses {
			no6(a.Span, a.Prefix.Addr())
			for _, has := range f.Routing.Addresses[l.Name] {
				if has.Addr() == a.Prefix.Addr() && has != a.Prefix && has.Addr().Is6() { // IPv4 can have both
					add(a.Span, "declare it so, or take that one away", "%s: %s has %s already, of another length", object, l.Name, has)
				}
			}
		}
	}
	for _, r := range v.Routes {
		no6(r.Span, r.To.Addr())
		if !r.Via.IsValid() || r.Via.IsLinkLocalUnicast() || missing {
			continue
		}
		switch on := f.Routing.carriers(v, r.Via); {
		case r.Link == "" && len(on) > 1:
			add(r.ViaSpan, "say on which: link: "+on[0], "%s: gateway %s may be on %s", object, r.Via, strings.Join(on, " or "))
		case len(on) == 0 && r.Link == "":
			add(r.ViaSpan, "declare an address of its network, or a route to it: {to: "+r.Via.String()+", link: "+v.Links[0].Name+"}", "%s: gateway %s is on no link of it", object, r.Via)
		case r.Link != "" && !f.Routing.reaches(v, r.Link, r.Via):
			add(r.ViaSpan, "declare an address of its network, or a route to it: {to: "+r.Via.String()+", link: "+r.Link+"}", "%s: gateway %s is not on %s", object, r.Via, r.Link)
		}
	}
}

// reaches reports whether a gateway is on one link of a VRF.
func (f Routing) reaches(v policy.VRF, link string, via netip.Addr) bool {
	v.Links = slices.DeleteFunc(slices.Clone(v.Links), func(l policy.VRFLink) bool { return l.Name != link })
	v.Routes = slices.DeleteFunc(slices.Clone(v.Routes), func(r policy.VRFRoute) bool { return r.Link != link })
	return len(f.carriers(v, via)) > 0
}
