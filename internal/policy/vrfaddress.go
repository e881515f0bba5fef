package policy

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A VRFAddress is an address that a link of a VRF, or the VRF's own device, has beside
// those that it has anyway.
type VRFAddress struct {
	Prefix netip.Prefix // the address, with the length of its network
	Span   Span
}

// A rawVRFLink is a link of a VRF, with what is declared of it.
type rawVRFLink struct {
	name      scalar
	addresses []scalar
}

var vrfLinkKeys = [...]string{"addresses"}

// rawVRFLinks reads the links of a VRF: a list of names, or a mapping with what is declared of each.
func (r *reader) rawVRFLinks(key scalar, n *yaml.Node) (links []rawVRFLink) {
	const empty, help = "links is an empty list", "name a link, or leave links out"
	if n.Kind != yaml.MappingNode {
		for _, name := range r.valueList(key, n, empty, help) {
			links = append(links, rawVRFLink{name: name})
		}
		return links
	}
	entries, ok := r.mapping(n, "links")
	if ok && len(n.Content) == 0 {
		r.report(r.span(n), "links is empty", help)
	}
	for _, e := range entries {
		if e.twice {
			continue
		}
		l := rawVRFLink{name: e.key}
		if n := e.value; n.Kind != yaml.ScalarNode || n.Tag != "!!null" || n.Anchor != "" { // else one with nothing declared
			const help = "as in links: {eth0: {addresses: [192.0.2.7/24]}}"
			r.block(e.key, n, "link "+quote(e.key.text), help, vrfLinkKeys[:], func(_ string, key scalar, n *yaml.Node) {
				l.addresses = r.addressList(key, n)
			})
		}
		links = append(links, l)
	}
	return links
}

func (r *reader) addressList(key scalar, n *yaml.Node) []scalar {
	return r.valueList(key, n, "addresses is an empty list", "name an address, as in 192.0.2.7/24, or leave addresses out")
}

// vrfAddresses reads what a device of a VRF has of addresses, and notes them: within one VRF an
// address is of one device.
func (m *meaning) vrfAddresses(raw []scalar, own bool, seen map[netip.Addr]Span) (all []VRFAddress) {
	for _, s := range raw {
		if !s.given() {
			continue
		}
		p, err := parseAddress(s.text, own)
		m.refuse(s.span, err)
		if err != nil {
			continue
		}
		if first, twice := seen[p.Addr()]; twice {
			m.report(s.span, "address "+p.Addr().String()+" is in this VRF already", "", Related{first, "first here"})
			continue
		}
		seen[p.Addr()] = s.span
		all = append(all, VRFAddress{p, s.span})
	}
	return all
}

// parseAddress reads the address of a device, with the length of its network; own is whether
// the device is its VRF's loopback. The error is a *ValueError.
func parseAddress(s string, own bool) (netip.Prefix, error) {
	fail := func(message, help string) (netip.Prefix, error) {
		return netip.Prefix{}, &ValueError{"address " + quote(s) + " " + message, help}
	}
	text, length, slash := strings.Cut(s, "/")
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil && leadingZeros(text):
		return fail("has a leading zero, which some read as octal", "")
	case err != nil:
		return fail("is no address", "as in 192.0.2.7/24 or 2001:db8::7/64")
	case addr.Zone() != "":
		return fail("has a zone", "leave %"+quoteless(addr.Zone())+" out")
	case addr.Is4In6():
		return fail("is an IPv4 address in IPv6 form", "write "+addr.Unmap().String())
	case addr.IsUnspecified() || addr.IsMulticast():
		return fail("can not be that of a device", "")
	case addr.IsLoopback() && !own:
		return fail("is of a loopback, which no link is", "declare it under addresses of the VRF, whose device is its loopback")
	case !slash:
		return fail("does not say how long its network is", "as in "+addr.String()+"/"+map[bool]string{true: "24", false: "64"}[addr.Is4()])
	}
	n, err := strconv.Atoi(length)
	switch {
	case err != nil || length != strconv.Itoa(n):
		if mask, err := netip.ParseAddr(length); err == nil && mask.Is4() && addr.Is4() {
			if ones, ok := maskLength(mask.As4()); ok {
				return fail("has a netmask", "write "+netip.PrefixFrom(addr, ones).String())
			}
		}
		return fail("has no length behind the slash", "1 to "+strconv.Itoa(addr.BitLen()))
	case n < 1 || n > addr.BitLen():
		return fail("has a length out of range", "1 to "+strconv.Itoa(addr.BitLen()))
	}
	p := netip.PrefixFrom(addr, n)
	if addr.Is4() && n < 31 && !addr.IsLoopback() {
		host := binary.BigEndian.Uint32(addr.AsSlice()) << n
		switch host {
		case 0:
			return fail("is that of the network, not of a device", "as in "+netip.PrefixFrom(addr.Next(), n).String())
		case ^uint32(0) << n:
			return fail("is the network's broadcast", "as in "+netip.PrefixFrom(addr.Prev(), n).String())
		}
	}
	return p, nil
}
