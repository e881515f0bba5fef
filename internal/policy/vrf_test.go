package policy

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// What is declared of VRFs, in all forms: links by name and as a list, the link of a gateway
// left out where there is one, and metrics as the kernel keeps them.
func TestVRFMeaning(t *testing.T) {
	p, err := Parse("p.yaml", []byte(`version: 1
vrfs:
  mgmt:
    table: 1000
    links:
      eth1: {addresses: [192.0.2.7/24, 2001:db8::7/64]}
      eth0:
    addresses: [127.0.0.53/8, 192.0.2.200/32]
    routes:
      - {to: default, via: 192.0.2.1}
      - {to: default, via: fe80::1, link: eth1}
      - {to: 10.0.0.0/8, via: 192.0.2.1, metric: 100}
      - {to: 10.0.0.0/8, link: eth0, metric: 4278198271}
      - {to: 192.0.2.99, type: blackhole}
  plain: {links: [eth2], routes: [{to: "::/0", via: fe80::1, metric: 5}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	prefix, addr := netip.MustParsePrefix, netip.MustParseAddr
	want := []VRF{
		{
			Name: "mgmt", Table: 1000,
			Links:     []VRFLink{{Name: "eth1", Addresses: []VRFAddress{{Prefix: prefix("192.0.2.7/24")}, {Prefix: prefix("2001:db8::7/64")}}}, {Name: "eth0"}},
			Addresses: []VRFAddress{{Prefix: prefix("127.0.0.53/8")}, {Prefix: prefix("192.0.2.200/32")}},
			Routes: []VRFRoute{
				{To: prefix("0.0.0.0/0"), Via: addr("192.0.2.1"), Type: Unicast},
				{To: prefix("::/0"), Via: addr("fe80::1"), Link: "eth1", Metric: 1024, Type: Unicast},
				{To: prefix("10.0.0.0/8"), Via: addr("192.0.2.1"), Metric: 100, Type: Unicast},
				{To: prefix("10.0.0.0/8"), Link: "eth0", Metric: 4278198271, Type: Unicast},
				{To: prefix("192.0.2.99/32"), Type: Blackhole},
			},
		},
		{Name: "plain", Links: []VRFLink{{Name: "eth2"}}, Routes: []VRFRoute{{To: prefix("::/0"), Via: addr("fe80::1"), Link: "eth2", Metric: 5, Type: Unicast}}},
	}
	if diff := cmp.Diff(want, p.VRFs, cmpopts.IgnoreTypes(Span{}), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
