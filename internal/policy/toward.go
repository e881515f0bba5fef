package policy

import (
	"net/netip"
	"slices"
	"strings"
)

// toward reads what a workload may send to prefixes, of which no two are the same.
func (m *meaning) toward(raws []rawToward) (all []Toward) {
	taken := map[netip.Prefix]Span{}
	for _, raw := range raws {
		for _, key := range []string{"method", "min", "links", "weight"} {
			if at, there := raw.keys.at(key); there {
				m.report(at, key+" is not of prefixes", "put it into an item without to")
			}
		}
		if !raw.keys.hasAny(limitKeys) {
			m.report(raw.key.span, "an item of egress with to has neither max nor pps", "as in {to: 10.0.0.0/8, max: 1Gbit}")
		}
		t := Toward{Limit: m.limit(raw.rawBandwidth, "a workload", m.only()), Span: raw.key.span}
		for _, to := range raw.to {
			if !to.given() {
				continue
			}
			prefix, err := parsePrefix("to", to.text)
			m.refuse(to.span, err)
			if err != nil {
				continue
			}
			if first, twice := taken[prefix]; twice {
				m.report(to.span, "prefix "+formatPrefix(prefix)+" has a limit already", "", Related{first, "first here"})
				continue
			}
			taken[prefix] = to.span
			t.Prefixes = append(t.Prefixes, prefix)
		}
		slices.SortFunc(t.Prefixes, comparePrefixes)
		all = append(all, t)
	}
	return all
}

// comparePrefixes orders prefixes by address, IPv4 first, and then by length.
func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// String puts into words where packets go: "to 192.0.2.0/24 or 2001:db8::/32".
func (t Toward) String() string { return FormatPrefixes(t.Prefixes) }

// FormatPrefixes puts into words where packets go that go to any of some prefixes.
func FormatPrefixes(prefixes []netip.Prefix) string {
	texts := make([]string, len(prefixes))
	for i, p := range slices.SortedFunc(slices.Values(prefixes), comparePrefixes) {
		texts[i] = formatPrefix(p)
	}
	return "to " + strings.Join(texts, " or ")
}
