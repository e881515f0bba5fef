package policy

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawnPrefix draws prefixes with and without bits behind them; those of IPv4 within IPv6 are never on the wire.
var drawnPrefix = rapid.Custom(func(t *rapid.T) netip.Prefix {
	addr := netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes")))
	if rapid.Bool().Draw(t, "v4") {
		addr = netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "bytes")))
	}
	return netip.PrefixFrom(addr, rapid.IntRange(0, addr.BitLen()).Draw(t, "bits"))
}).Filter(func(p netip.Prefix) bool { return !p.Addr().Is4In6() && !p.Masked().Addr().Is4In6() })

func TestPrefixRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := drawnPrefix.Draw(t, "prefix")
		want := whole.Masked()
		if got, err := parsePrefix("cidr", formatPrefix(want)); err != nil || got != want {
			t.Fatalf("%v prints as %q, which is %v, %v", want, formatPrefix(want), got, err)
		}
		if _, err := parsePrefix("cidr", whole.String()); (err == nil) != (whole == want) {
			t.Fatalf("%v: %v", whole, err)
		}
	})
}

func TestPrefixRefuses(t *testing.T) {
	for text, help := range map[string]string{
		"": "10.0.0.0/8", "10.1.2.3/8": "10.0.0.0/8", "2001:db8::1/32": "2001:db8::/32", "10.0.0.0/33": "32", "::/129": "128",
		"10.0.0.0/-1": "32", "10.0.0.0/255.255.0.0": "10.0.0.0/16", "10.0.0.1/255.255.0.0": "10.0.0.0/16", "10.0.0.010": "",
		"10.0.0.0/08": "32", "10.0.0.0/+8": "32", "::ffff:10.0.0.1": "10.0.0.1", "::ffff:10.0.0.0/104": "10.0.0.0/8", "fe80::1%eth0": "eth0",
		"localhost": "10.0.0.0/8", "10.0.0": "", "10.0.0.0/255.0.255.0": "32",
	} {
		got, err := parsePrefix("cidr", text)
		invalid, ok := err.(*ValueError)
		if !ok {
			t.Errorf("parsePrefix(%q) = %v, %v", text, got, err)
		} else if !strings.Contains(invalid.Help, help) {
			t.Errorf("parsePrefix(%q): help %q, want %q in it", text, invalid.Help, help)
		}
	}
}
