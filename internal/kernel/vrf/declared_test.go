package vrf

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// declaring is a VRF with the bed's link of which all kinds of things are declared: some beside what the link has, some that
// it has already, and some in the place of others.
func (b *bed) declaring() plan.VRF {
	v := plan.VRF{Table: 1000, Links: []string{b.link.Name}}
	for _, a := range []string{"192.0.2.7/24", "192.0.2.9/24", "198.51.100.7/25", "2001:db8::7/64"} {
		v.Addresses = append(v.Addresses, plan.DeclaredAddress{Link: b.link.Name, Prefix: netip.MustParsePrefix(a)})
	}
	v.Addresses = append(v.Addresses, plan.DeclaredAddress{Link: "mgmt", Prefix: netip.MustParsePrefix("203.0.113.7/32")})
	route := func(to, via string, metric uint32, kind policy.RouteType) {
		r := plan.DeclaredRoute{To: netip.MustParsePrefix(to), Metric: metric, Type: kind}
		if via != "" {
			r.Via = netip.MustParseAddr(via)
		}
		if kind == policy.Unicast {
			r.Link = b.link.Name
		}
		v.Routes = append(v.Routes, r)
	}
	route("10.9.0.0/16", "172.16.0.1", 0, policy.Unicast) // by the route behind it
	route("172.16.0.1/32", "", 0, policy.Unicast)
	route("0.0.0.0/0", "198.51.100.1", 100, policy.Unicast)
	route("::/0", "fe80::2", 1024, policy.Unicast)
	route("2001:db8:9::/48", "2001:db8::1", 5, policy.Unicast)
	route("203.0.113.0/25", "192.0.2.254", 0, policy.Unicast) // is there
	route("203.0.113.128/25", "", 0, policy.Unreachable)
	route("2001:db8:8::/48", "", 1024, policy.Blackhole)
	route("198.18.0.0/15", "", 7, policy.Prohibit)
	return v
}

// furnish gives the link what moves with it.
func (b *bed) furnish() {
	for _, args := range []string{
		"addr add 192.0.2.9/24 dev LINK",
		"route add default via 192.0.2.254 dev LINK proto dhcp metric 100",
		"route append default via 192.0.2.253 dev LINK metric 100",
		"route add 203.0.113.0/25 via 192.0.2.254 dev LINK proto bird",
		"route add default via 192.0.2.252 dev LINK metric 7",
		"-6 route add default via fe80::1 dev LINK proto ra metric 1024",
		"-6 route add 2001:db8:9::/48 metric 5 nexthop via FAR6 dev LINK nexthop via fe80::1 dev LINK",
	} {
		b.ip(args)
	}
}

// TestDeclared gives a VRF what is declared of it, and holds it against the words of ip.
func TestDeclared(t *testing.T) {
	b := newBed(t)
	b.furnish()
	before := b.all()
	moved := plan.VRF{Table: 1000, Links: []string{b.link.Name}}
	b.mustReach(map[string]plan.VRF{"mgmt": moved})
	undeclared := b.all()
	want := map[string]plan.VRF{"mgmt": b.declaring()}
	b.mustReach(want)
	whole := b.all()
	for _, want := range []string{
		"addr show dev LINK: inet 192.0.2.7/24 ", "addr show dev LINK: inet6 2001:db8::7/64 scope global nodad", "addr show dev mgmt: inet 203.0.113.7/32",
		"route show vrf mgmt: default via 198.51.100.1 dev LINK proto static metric 100", "route show vrf mgmt: default via 192.0.2.252 dev LINK metric 7",
		"-6 route show vrf mgmt: default via fe80::2 dev LINK proto static metric 1024", "-6 route show vrf mgmt: 2001:db8:9::/48 via 2001:db8::1 dev LINK proto static metric 5",
		"route show vrf mgmt: 203.0.113.0/25 via 192.0.2.254 dev LINK proto bird", "route show vrf mgmt: 10.9.0.0/16 via 172.16.0.1 dev LINK proto static",
		"route show vrf mgmt: unreachable 203.0.113.128/25 proto static", "-6 route show vrf mgmt: blackhole 2001:db8:8::/48", "route show vrf mgmt: prohibit 198.18.0.0/15 proto static metric 7",
		"route get vrf mgmt 10.9.8.7: via 172.16.0.1 dev LINK table 1000", "-6 route get vrf mgmt 2001:db8:9::5: via 2001:db8::1 dev LINK table 1000", "route get vrf mgmt 203.0.113.7: dev mgmt table 1000",
	} {
		args, has, _ := strings.Cut(strings.ReplaceAll(want, "LINK", b.link.Name), ": ")
		if out := b.ip(args); !strings.Contains(out, has) {
			t.Errorf("ip %s has no %q:\n%s", args, has, out)
		}
	}
	for _, gone := range []string{"192.0.2.253", "proto dhcp", "proto ra", "nexthop"} {
		if strings.Contains(whole, gone) {
			t.Errorf("%s is still there:\n%s", gone, whole)
		}
	}
	if b.mustReach(want); b.places != 0 {
		t.Errorf("once more it is made in %d places", b.places)
	}
	b.mustReach(map[string]plan.VRF{"mgmt": moved})
	if diff := cmp.Diff(undeclared, b.all()); diff != "" {
		t.Errorf("declared no more, it leaves (-before +after)\n%s", diff)
	}
	another := b.declaring()
	another.Table = 1001
	b.mustReach(want)
	b.mustReach(map[string]plan.VRF{"mgmt": another})
	other := strings.NewReplacer("table 1000", "table 1001", "lookup 1000", "lookup 1001", "mgmt              1000", "mgmt              1001").Replace(whole)
	if diff := cmp.Diff(other, b.all()); diff != "" {
		t.Errorf("by another table it has (-before +after)\n%s", diff)
	}
	b.mustReach(nil)
	if diff := cmp.Diff(before, b.all()); diff != "" {
		t.Errorf("left (-before +after)\n%s", diff)
	}
	b.mustReach(want)
	b.missing(want)
	b.ip("link set LINK nomaster") // which takes addresses of IPv6 and all routes
	b.mustReach(want)
	if lacks := b.undeclared(want["mgmt"]); len(lacks) > 0 {
		t.Errorf("moved in again it lacks %v", lacks)
	}
	b.mustReach(nil)
	for _, ours := range []string{"192.0.2.7", "198.51.100", "203.0.113.7", "203.0.113.128", "2001:db8::", "2001:db8:8::", "fe80::2 ", "172.16.0.1", "198.18"} {
		if left := b.all(); strings.Contains(left, ours) {
			t.Errorf("%s is left:\n%s", ours, left)
		}
	}
}

// undeclared is what is declared of a VRF and is not read back.
func (b *bed) undeclared(want plan.VRF) (lacks []string) {
	b.t.Helper()
	b.here.Do(func() {
		all, err := b.room.Read()
		if err != nil {
			b.t.Error(err)
		}
		for _, a := range want.Addresses {
			if !slices.Contains(all["mgmt"].Addresses, a) {
				lacks = append(lacks, a.String())
			}
		}
		for _, r := range want.Routes {
			if !slices.Contains(all["mgmt"].Routes, r) {
				lacks = append(lacks, r.String())
			}
		}
	})
	return lacks
}

// missing has others take away what is declared: it is read back as missing, and comes back.
func (b *bed) missing(want map[string]plan.VRF) {
	b.t.Helper()
	whole := b.all()
	for args, lacks := range map[string]string{
		"-6 addr del 2001:db8::7/64 dev LINK":                                     "2001:db8::7/64 on LINK",
		"addr del 203.0.113.7/32 dev mgmt":                                        "203.0.113.7/32 on mgmt",
		"route del default vrf mgmt metric 100":                                   "default via 198.51.100.1 dev LINK metric 100",
		"route prepend default via 192.0.2.250 dev LINK vrf mgmt metric 100":      "default via 198.51.100.1 dev LINK metric 100",
		"-6 route append 2001:db8:9::/48 via fe80::5 dev LINK vrf mgmt metric 5":  "2001:db8:9::/48 via 2001:db8::1 dev LINK metric 5",
		"-6 route replace 2001:db8:9::/48 via fe80::5 dev LINK vrf mgmt metric 5": "2001:db8:9::/48 via 2001:db8::1 dev LINK metric 5",
		"route replace 10.9.0.0/16 via 192.0.2.250 dev LINK vrf mgmt":             "10.9.0.0/16 via 172.16.0.1 dev LINK",
		"route del unreachable 203.0.113.128/25 vrf mgmt":                         "unreachable 203.0.113.128/25",
		"-6 route del blackhole 2001:db8:8::/48 vrf mgmt":                         "blackhole 2001:db8:8::/48",
	} {
		b.ip(args)
		if got := strings.ReplaceAll(strings.Join(b.undeclared(want["mgmt"]), ", "), b.link.Name, "LINK"); got != lacks {
			b.t.Errorf("after ip %s it lacks %q, not %q", args, got, lacks)
		}
		b.mustReach(want)
		if diff := cmp.Diff(whole, b.all()); diff != "" {
			b.t.Errorf("ip %s is not mended (-before +after)\n%s", args, diff)
		}
	}
}

// What others add beside what is declared stays when that goes, though the kernel would take it along: an address in a
// network of which the declared one is the first, and routes of a link that loses its last address.
func TestDeclaredAlone(t *testing.T) {
	b := newBed(t)
	b.ip("addr flush dev LINK scope global")
	b.ip("route add 203.0.113.0/24 dev LINK")
	before := b.all()
	v := plan.VRF{Table: 1000, Links: []string{b.link.Name}}
	plain := map[string]plan.VRF{"mgmt": v}
	v.Addresses = []plan.DeclaredAddress{{Link: b.link.Name, Prefix: netip.MustParsePrefix("192.0.2.7/24")}, {Link: b.link.Name, Prefix: netip.MustParsePrefix("2001:db8::7/64")}}
	v.Routes = []plan.DeclaredRoute{{To: netip.MustParsePrefix("203.0.113.0/24"), Via: netip.MustParseAddr("192.0.2.1"), Link: b.link.Name, Type: policy.Unicast}}
	want := map[string]plan.VRF{"mgmt": v}
	for _, to := range []map[string]plan.VRF{nil, plain} {
		b.mustReach(plain)
		undeclared := b.all()
		b.mustReach(want)
		b.mustReach(to)
		if diff := cmp.Diff(map[bool]string{true: before, false: undeclared}[to == nil], b.all()); diff != "" {
			t.Errorf("to %v: left (-before +after)\n%s", to, diff)
		}
		b.mustReach(want)
		b.ip("addr add 192.0.2.10/24 dev LINK")
		b.ip("route add 10.0.0.0/8 via 192.0.2.99 dev LINK vrf mgmt")
		b.ip("route replace 203.0.113.0/24 via 192.0.2.98 dev LINK vrf mgmt")
		b.mustReach(to)
		table := map[bool]string{true: "main", false: "1000"}[to == nil]
		for args, has := range map[string]string{
			"addr show dev LINK": "inet 192.0.2.10/24", "route show table " + table + " 10.0.0.0/8": "192.0.2.99", "route show table " + table + " 203.0.113.0/24": "192.0.2.98",
		} {
			if out := b.ip(args); !strings.Contains(out, has) {
				t.Errorf("ip %s has no %q:\n%s", args, has, out)
			}
		}
		if all := b.all(); strings.Contains(all, "192.0.2.7") || strings.Contains(all, "2001:db8::7") {
			t.Errorf("what was declared is there:\n%s", all)
		}
		b.ip("addr del 192.0.2.10/24 dev LINK")
		b.ip("route replace 203.0.113.0/24 dev LINK table " + table)
		b.mustReach(nil)
		if diff := cmp.Diff(before, b.all()); diff != "" {
			t.Fatalf("after all of it (-before +after)\n%s", diff)
		}
	}
}

// TestDeclaredCutOff breaks work off at each place on the way to a VRF of which much is declared, to one of which nothing
// is any more, and to none: the next one finishes it or undoes it.
func TestDeclaredCutOff(t *testing.T) {
	b := newBed(t)
	b.furnish()
	before := b.all()
	want := map[string]plan.VRF{"mgmt": b.declaring()}
	plain := maps.Clone(want)
	plain["mgmt"] = plan.VRF{Table: 1000, Links: []string{b.link.Name}}
	b.mustReach(want)
	whole := b.all()
	b.mustReach(plain)
	undeclared := b.all()
	b.mustReach(nil)
	for _, way := range []struct {
		name     string
		from, to map[string]plan.VRF
		places   int
	}{{"given", nil, want, 15}, {"taken", want, plain, 5}, {"removed", want, nil, 10}} {
		at := 1
		for ; ; at++ {
			b.mustReach(way.from)
			b.breakAt = at
			if b.reach(way.to) == nil {
				break
			}
			switch at % 3 { // else it is undone at once
			case 0:
				b.mustReach(want)
				if diff := cmp.Diff(whole, b.all()); diff != "" {
					t.Fatalf("%s, place %d: made, it has (-want +has)\n%s", way.name, at, diff)
				}
			case 1:
				b.mustReach(plain)
				if diff := cmp.Diff(undeclared, b.all()); diff != "" {
					t.Fatalf("%s, place %d: of which nothing is declared, it has (-want +has)\n%s", way.name, at, diff)
				}
			}
			b.mustReach(nil)
			if diff := cmp.Diff(before, b.all()); diff != "" {
				t.Fatalf("%s, place %d: left (-before +after)\n%s", way.name, at, diff)
			}
		}
		if at < way.places {
			t.Errorf("%s: only %d places", way.name, at)
		}
		b.mustReach(nil)
	}
}
