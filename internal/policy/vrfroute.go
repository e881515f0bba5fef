package policy

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A VRFRoute is a route that a VRF's table has beside those that its links bring.
type VRFRoute struct {
	To     netip.Prefix // of no length: all
	Via    netip.Addr   // the gateway; the zero Addr: none
	Link   string       // of the VRF; "": that on which the gateway is, or none
	Metric uint32       // as the kernel keeps it
	Type   RouteType
	Span   Span // of to

	// ViaSpan is where the gateway stands; zero where there is none.
	ViaSpan Span
}

// A RouteType says what becomes of packets that go by a route.
type RouteType string

// The types of routes: packets are sent, or not, and their sender is told so or not.
const (
	Unicast     RouteType = "unicast"
	Unreachable RouteType = "unreachable"
	Prohibit    RouteType = "prohibit"
	Blackhole   RouteType = "blackhole"
)

func routeTypes() []string {
	return []string{string(Unicast), string(Unreachable), string(Prohibit), string(Blackhole)}
}

// The metric of the kernel's for a route of IPv6 that names none, and the greatest here: the
// one behind it is that of the route that ends a VRF's table.
const (
	metricOfIPv6 = 1024
	mostMetric   = 4278198271
)

type rawVRFRoute struct {
	at                          Span
	keys                        keySet
	to, via, link, metric, form scalar
}

var vrfRouteKeys = [...]string{"to", "via", "link", "metric", "type"}

const routeHelp = "as in {to: default, via: 192.0.2.1}"

func (r *reader) rawVRFRoutes(key scalar, n *yaml.Node) (routes []rawVRFRoute) {
	items, ok := r.list(n, "routes", "as in [{to: default, via: 192.0.2.1}]")
	if ok && len(items) == 0 {
		r.report(r.span(n), "routes is an empty list", routeHelp+", or leave routes out")
	}
	for _, n := range items {
		raw := rawVRFRoute{at: r.opening(n)}
		raw.keys = r.block(scalar{text: "routes", kind: plain, span: raw.at}, n, "a route", routeHelp, vrfRouteKeys[:], func(name string, key scalar, n *yaml.Node) {
			s := r.value(key, n, name)
			switch name {
			case "to":
				raw.to = s
			case "via":
				raw.via = s
			case "link":
				raw.link = s
			case "metric":
				raw.metric = s
			case "type":
				raw.form = s
			}
		})
		if raw.keys.record {
			routes = append(routes, raw)
		}
	}
	return routes
}

// A routePlace is what a table has one route for.
type routePlace struct {
	to     netip.Prefix
	metric uint32
}

// vrfRoutes reads the routes of a VRF that has some addresses.
func (m *meaning) vrfRoutes(raw []rawVRFRoute, v *VRF, own map[netip.Addr]Span) {
	seen := map[routePlace]Span{}
	for _, raw := range raw {
		r, ok := m.vrfRoute(raw, v)
		if !ok {
			continue
		}
		if at, is := own[r.Via]; is {
			m.report(r.ViaSpan, "gateway "+r.Via.String()+" is an address of this host's own", "", Related{at, "declared here"})
		}
		if at, is := own[r.To.Addr()]; is && r.To.IsSingleIP() {
			m.report(r.Span, "to "+quote(raw.to.text)+" is an address of this host's own", "", Related{at, "declared here"})
		}
		if first, twice := seen[routePlace{r.To, r.Metric}]; twice {
			m.report(r.Span, "a route to "+quoteless(raw.to.text)+" with metric "+strconv.FormatUint(uint64(r.Metric), 10)+" is in this VRF already", "",
				Related{first, "first here"})
			continue
		}
		seen[routePlace{r.To, r.Metric}] = r.Span
		v.Routes = append(v.Routes, r)
	}
}

// vrfRoute reads one route; ok is false if it is none.
func (m *meaning) vrfRoute(raw rawVRFRoute, v *VRF) (r VRFRoute, ok bool) {
	before := len(m.errs)
	r = VRFRoute{Type: Unicast, Span: raw.to.span, ViaSpan: raw.via.span}
	if s := raw.form; s.given() {
		r.Type = RouteType(s.text)
		if types := routeTypes(); !slices.Contains(types, s.text) {
			m.report(s.span, "type "+quote(s.text)+" is not known", DidYouMean(s.text, types, possible(types)))
		}
	}
	if raw.via.given() {
		var err error
		r.Via, err = parseGateway(raw.via.text)
		m.refuse(raw.via.span, err)
	}
	m.routeTo(raw, &r)
	m.routeLink(raw, &r, v)
	if m.unquoted(raw.metric, "metric") {
		n, err := number("metric", raw.metric.text, 0, mostMetric)
		m.refuse(raw.metric.span, err)
		r.Metric = uint32(n)
	}
	if r.Metric == 0 && r.To.Addr().Is6() {
		r.Metric = metricOfIPv6
	}
	return r, len(m.errs) == before && raw.to.given()
}

// routeTo reads where a route leads to: a prefix, or default of the gateway's family.
func (m *meaning) routeTo(raw rawVRFRoute, r *VRFRoute) {
	s := raw.to
	switch {
	case !raw.keys.has("to"):
		m.report(raw.at, "this route does not say where to", routeHelp)
	case !s.given():
	case s.text == "default" && r.Via.IsValid():
		r.To = netip.PrefixFrom(unspecified(r.Via), 0)
	case s.text == "default" && !raw.via.given():
		m.report(s.span, "a default route without a gateway may be of IPv4 or IPv6", "write 0.0.0.0/0 or ::/0")
	case s.text == "default":
	default:
		var err error
		r.To, err = parsePrefix("to", s.text)
		m.refuse(s.span, err)
		if err == nil && r.Via.IsValid() && r.Via.Is4() != r.To.Addr().Is4() {
			m.report(raw.via.span, "gateway "+r.Via.String()+" and "+quoteless(s.text)+" are of two families", "",
				Related{s.span, "it is to lead here"})
		}
		if err == nil && r.To.Addr().IsMulticast() {
			m.report(s.span, "to "+quote(s.text)+" is multicast, of which no route is declared", "")
		}
	}
}

func unspecified(of netip.Addr) netip.Addr {
	if of.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// routeLink reads by which link a route goes.
func (m *meaning) routeLink(raw rawVRFRoute, r *VRFRoute, v *VRF) {
	names := v.LinkNames()
	if !slices.Contains(routeTypes(), string(r.Type)) {
		return
	}
	if r.Type != Unicast {
		for _, s := range []scalar{raw.via, raw.link} {
			if s.given() {
				m.report(s.span, "a route of type "+quoteless(raw.form.text)+" goes nowhere, by no gateway and no link", "leave it out, or the type")
			}
		}
		return
	}
	if s := raw.link; s.given() {
		r.Link = s.text
		if !slices.Contains(names, s.text) {
			m.report(s.span, "link "+quote(s.text)+" is not one of this VRF", DidYouMean(s.text, names, possible(names)))
		}
		return
	}
	switch {
	case raw.keys.has("link"):
	case !raw.keys.has("via"):
		if raw.keys.has("to") {
			m.report(raw.at, "this route has neither via, link nor type", routeHelp+", {to: 10.0.0.0/8, link: eth0} or {to: 10.0.0.0/8, type: unreachable}")
		}
	case len(names) == 1 && len(v.Links) == 1:
		r.Link = names[0]
	case len(names) == 0:
		m.report(raw.via.span, "a gateway is on a link, and this VRF has none", "name one under links")
	case r.Via.IsLinkLocalUnicast():
		m.report(raw.via.span, "gateway "+r.Via.String()+" may be on any link", "say on which: link: "+quoteless(names[0]))
	}
}

// parseGateway reads the address of a gateway. The error is a *ValueError.
func parseGateway(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	message, help := "", ""
	switch {
	case strings.Contains(s, "/"):
		message, help = "has a length", "leave it out"
	case err != nil && leadingZeros(s):
		message = "has a leading zero, which some read as octal"
	case err != nil:
		message, help = "is no address", "as in 192.0.2.1 or fe80::1"
	case addr.Zone() != "":
		message, help = "has a zone", "write via: "+addr.WithZone("").String()+", link: "+quoteless(addr.Zone())
	case addr.Is4In6():
		message, help = "is an IPv4 address in IPv6 form", "write "+addr.Unmap().String()
	case addr.IsUnspecified() || addr.IsMulticast() || addr.IsLoopback():
		message = "is nobody's on a link"
	default:
		return addr, nil
	}
	return netip.Addr{}, &ValueError{"via " + quote(s) + " " + message, help}
}
