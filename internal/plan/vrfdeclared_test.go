package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

const declaringPolicy = `version: 1
vrfs:
  mgmt:
    table: 500
    links: {eth0: {addresses: [192.0.2.7/24, 2001:db8::7/64]}, eth1: }
    addresses: [198.51.100.7/32]
    routes:
      - {to: default, via: 192.0.2.1}
      - {to: "::/0", via: fe80::1, link: eth1}
      - {to: 10.0.0.0/8, via: 172.16.0.1, metric: 5}
      - {to: 172.16.0.1, link: eth1}
      - {to: 203.0.113.0/24, type: unreachable}
      - {to: "2001:db8:1::/48", type: blackhole}
`

func address(link, prefix string) DeclaredAddress {
	return DeclaredAddress{link, netip.MustParsePrefix(prefix)}
}

func route(to, via, link string, metric uint32) DeclaredRoute {
	r := DeclaredRoute{To: netip.MustParsePrefix(to), Link: link, Metric: metric, Type: policy.Unicast}
	if via != "" {
		r.Via = netip.MustParseAddr(via)
	}
	return r
}

// What is declared is wanted by the links that its gateways are on, and what is missing or left is
// told: a plan, a status, and whether somebody may be cut off.
func TestDeclared(t *testing.T) {
	p := parsed(t, declaringPolicy)
	f := hostOf(p)
	w, errs := Wanted(p, f, IDs{}, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	const all = "198.51.100.7/32 on mgmt, 192.0.2.7/24 on eth0, 2001:db8::7/64 on eth0, default via 192.0.2.1 dev eth0, default via fe80::1 dev eth1, " +
		"10.0.0.0/8 via 172.16.0.1 dev eth1 metric 5, 172.16.0.1/32 dev eth1, unreachable 203.0.113.0/24, blackhole 2001:db8:1::/48"
	mgmt := w.VRFs["mgmt"]
	if got := strings.Join(mgmt.words(), ", "); got != all {
		t.Fatalf("wanted are\n%s, not\n%s", got, all)
	}
	more := func(v VRF) VRF { // what links brought is there too
		v.Addresses = append([]DeclaredAddress{address("eth0", "192.0.2.9/24")}, v.Addresses...)
		v.Routes = append([]DeclaredRoute{route("0.0.0.0/0", "192.0.2.254", "eth0", 100)}, v.Routes...)
		return v
	}
	for name, c := range map[string]struct {
		have    VRF
		line    string
		touched string
		cutOff  string // where both links have a default route
	}{
		"as wanted":          {more(mgmt), "", "[]", ""},
		"added":              {VRF{mgmt.Table, mgmt.Links, nil, more(mgmt).Declared, mgmt.Declared}, "", "[]", ""},
		"nothing":            {VRF{}, "+ vrf mgmt: table 500, eth0, eth1; " + all, "[eth0 eth1]", "eth1"},
		"nothing declared":   {VRF{Table: 500, Links: mgmt.Links}, "~ vrf mgmt: " + strings.ReplaceAll(all, ",", " is missing;") + " is missing", "[eth0 eth1]", "eth1"},
		"an address":         {VRF{500, mgmt.Links, nil, mgmt.but(Declared{Addresses: mgmt.Addresses[1:2]}), mgmt.Declared}, "~ vrf mgmt: 192.0.2.7/24 on eth0 is missing", "[eth0]", ""},
		"its own address":    {VRF{500, mgmt.Links, nil, mgmt.but(Declared{Addresses: mgmt.Addresses[:1]}), mgmt.Declared}, "~ vrf mgmt: 198.51.100.7/32 on mgmt is missing", "[]", ""},
		"a route":            {VRF{500, mgmt.Links, nil, mgmt.but(Declared{Routes: mgmt.Routes[4:5]}), mgmt.Declared}, "~ vrf mgmt: unreachable 203.0.113.0/24 is missing", "[eth0 eth1]", ""},
		"the default":        {VRF{500, mgmt.Links, nil, mgmt.but(Declared{Routes: mgmt.Routes[:1]}), mgmt.Declared}, "~ vrf mgmt: default via 192.0.2.1 dev eth0 is missing", "[eth0 eth1]", "eth1"},
		"an address is left": {VRF{500, mgmt.Links, nil, more(mgmt).Declared, Declared{Addresses: more(mgmt).Addresses[:1]}}, "~ vrf mgmt: 192.0.2.9/24 on eth0 is not declared any more", "[eth0]", ""},
		"a default is left":  {VRF{500, mgmt.Links, nil, more(mgmt).Declared, Declared{Routes: more(mgmt).Routes[:1]}}, "~ vrf mgmt: default via 192.0.2.254 dev eth0 metric 100 is not declared any more", "[eth0 eth1]", "eth1"},
	} {
		t.Run(name, func(t *testing.T) {
			have := w.State
			have.VRFs = map[string]VRF{"mgmt": c.have}
			if name == "nothing" {
				have.VRFs = nil
			}
			var lines []string
			for _, d := range Diff(have, w) {
				lines = append(lines, d.String())
			}
			if got := strings.Join(lines, "\n"); got != c.line {
				t.Errorf("differs by\n%s, not\n%s", got, c.line)
			}
			if got := fmt.Sprint(Touched(have, w)); got != c.touched {
				t.Errorf("touches %s, not %s", got, c.touched)
			}
			f.Routing.Default = map[string]bool{"eth0": true, "eth1": true}
			if got := CutOff(have, w, f); got != c.cutOff {
				t.Errorf("cuts off %q, not %q", got, c.cutOff)
			}
			f.Routing.Default["eth5"] = true
			if got := CutOff(have, w, f); got != "" {
				t.Errorf("cuts off %q though another link has a default route", got)
			}
			want := map[bool]Verdict{true: Kept, false: Broken}[c.line == ""]
			if j := Judge(p, w, Diff(have, w), Measured{}); len(j) != 1 || j[0].Verdict != want {
				t.Errorf("judged %+v", j)
			}
		})
	}
}

// A VRF that goes tells what goes with it, and stays for a while with what Weir has added and is there.
func TestStaying(t *testing.T) {
	v := VRF{Table: 7, Links: []string{"eth0", "eth1"}, Declared: Declared{
		Addresses: []DeclaredAddress{address("eth0", "192.0.2.7/24"), address("eth0", "192.0.2.9/24")},
		Routes:    []DeclaredRoute{route("0.0.0.0/0", "192.0.2.1", "eth0", 0)},
	}}
	v.Added = Declared{v.Addresses[:1], []DeclaredRoute{v.Routes[0], route("10.0.0.0/8", "", "eth1", 0)}}
	if got, want := v.Staying(map[string]bool{"eth1": true}).String(), "table 7, eth0; 192.0.2.7/24 on eth0, default via 192.0.2.1 dev eth0"; got != want {
		t.Errorf("stays as %q, not %q", got, want)
	}
	const want = "eth0, eth1 with addresses and routes back to the main table, but for what was declared: 192.0.2.7/24 on eth0, default via 192.0.2.1 dev eth0, 10.0.0.0/8 dev eth1"
	if got := v.leaving(); got != want {
		t.Errorf("leaves as %q", got)
	}
}

// What can not be declared on this host is told with its place.
func TestDeclaredCheck(t *testing.T) {
	prefixes := func(all ...string) (p []netip.Prefix) {
		for _, s := range all {
			p = append(p, netip.MustParsePrefix(s))
		}
		return p
	}
	for name, c := range map[string]struct {
		policy  string // of mgmt
		routing Routing
		want    []string
	}{
		"all is declared":    {"{links: {eth0: {addresses: [192.0.2.7/24]}}, routes: [{to: default, via: 192.0.2.1}]}", Routing{}, nil},
		"on no link":         {"{links: [eth0, eth1], routes: [{to: default, via: 192.0.2.1}]}", Routing{}, []string{`2:64 vrf "mgmt": gateway 192.0.2.1 is on no link of it`}},
		"only its own":       {"{links: {eth0: {addresses: [192.0.2.1/32]}, eth1: }, routes: [{to: default, via: 192.0.2.2}]}", Routing{}, []string{`2:95 vrf "mgmt": gateway 192.0.2.2 is on no link of it`}},
		"an address is here": {"{links: [eth0, eth1], routes: [{to: default, via: 192.0.2.1}]}", Routing{Addresses: map[string][]netip.Prefix{"eth1": prefixes("192.0.2.9/24")}}, nil},
		"a route is here":    {"{links: [eth0, eth1], routes: [{to: default, via: 192.0.2.1}]}", Routing{OnLink: map[string][]netip.Prefix{"eth1": prefixes("192.0.2.0/30")}}, nil},
		"a route elsewhere":  {"{links: [eth0, eth1], routes: [{to: default, via: 192.0.2.1}]}", Routing{OnLink: map[string][]netip.Prefix{"eth7": prefixes("192.0.2.0/30")}}, []string{`2:64 vrf "mgmt": gateway 192.0.2.1 is on no link of it`}},
		"not on that link":   {"{links: [eth0, eth1], routes: [{to: default, via: 192.0.2.1, link: eth0}]}", Routing{OnLink: map[string][]netip.Prefix{"eth1": prefixes("192.0.2.0/30")}}, []string{`2:64 vrf "mgmt": gateway 192.0.2.1 is not on eth0`}},
		"on two": {
			"{links: [eth0, eth1], routes: [{to: default, via: 192.0.2.1}]}",
			Routing{OnLink: map[string][]netip.Prefix{"eth1": prefixes("192.0.2.0/24"), "eth0": prefixes("192.0.2.0/24")}}, []string{`2:64 vrf "mgmt": gateway 192.0.2.1 may be on eth0 or eth1`},
		},
		"in the smaller of two": {
			"{links: [eth0, eth1], routes: [{to: default, via: 192.0.2.1}]}",
			Routing{OnLink: map[string][]netip.Prefix{"eth1": prefixes("192.0.2.0/25"), "eth0": prefixes("192.0.2.0/24")}}, nil,
		},
		"by a declared route": {"{links: [eth0, eth1], routes: [{to: default, via: 192.0.2.1}, {to: 192.0.2.1, link: eth1}]}", Routing{}, nil},
		"link-local":          {"{links: [eth0], routes: [{to: default, via: fe80::1}]}", Routing{}, nil},
		"no IPv6": {
			"{links: {eth0: {addresses: [2001:db8::7/64]}}, addresses: [2001:db8::8/128], routes: [{to: default, via: fe80::1}]}", Routing{NoIPv6: true},
			[]string{`2:42 vrf "mgmt": no IPv6 here`, `2:73 vrf "mgmt": no IPv6 here`, `2:105 vrf "mgmt": no IPv6 here`},
		},
		"another length": {
			"{links: {eth0: {addresses: [2001:db8::7/64, 192.0.2.7/24]}}}", Routing{Addresses: map[string][]netip.Prefix{"eth0": prefixes("2001:db8::7/128", "192.0.2.7/32")}},
			[]string{`2:42 vrf "mgmt": eth0 has 2001:db8::7/128 already, of another length`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := parsed(t, "version: 1\nvrfs: {mgmt: "+c.policy+"}\n")
			f := hostOf(p)
			f.Routing = c.routing
			var got []string
			for _, d := range Check(p, f) {
				got = append(got, fmt.Sprintf("%d:%d %s", d.Line, d.Column, d.Message))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
