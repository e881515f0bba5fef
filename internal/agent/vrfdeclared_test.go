package agent

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// declaringPolicy moves the bench's link into a VRF, of which is declared what the link has not, what it has, and what is in the
// place of what it has.
func (b *bench) declaringPolicy() string {
	return strings.NewReplacer("LINK", b.link.Name, "FAR4", b.far.IPv4.Addr().String(), "HAS4", b.far.IPv4.Addr().Next().String()).Replace(`version: 1
vrfs:
  mgmt:
    table: 1000
    links:
      LINK: {addresses: [198.18.7.7/24, 2001:db8:77::7/64, HAS4/24]}
    addresses: [198.18.8.8/32]
    routes:
      - {to: default, via: 198.18.7.1, metric: 100}
      - {to: "::/0", via: fe80::2}
      - {to: 10.77.0.0/16, via: FAR4}
      - {to: 203.0.113.192/26, type: unreachable}
`)
}

// made is what there is of a VRF of which much is declared.
func (b *bench) made() string {
	lines := strings.Split(b.here.Output("ip", "-br", "addr"), "\n")
	for i, line := range lines {
		fields := strings.Fields(line)
		slices.Sort(fields)
		lines[i] = strings.Join(fields, " ")
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n" + b.routes("1000") + "\n" + b.here.Output("ip", "route", "show", "vrf", "mgmt", "type", "unreachable")
}

// TestVRFDeclared declares addresses and routes of a VRF: they are there beside what the link brought, what is taken of them is
// told and mended, and they go alone.
func TestVRFDeclared(t *testing.T) {
	testutil.Needs(t, "vrf link", "ip", "ping")
	b := newBench(t)
	b.furnish(t)
	before := b.here.Routing()
	b.apply(t, b.mgmtPolicy())
	undeclared := b.here.Routing()
	var proposed Proposal
	b.Accept = func(p Proposal) error { proposed = p; return nil }
	if changes := b.apply(t, b.declaringPolicy()); len(changes) != 1 || !strings.Contains(changes[0].String(), "198.18.7.7/24 on "+b.link.Name+" is missing; ") {
		t.Errorf("it changes %v", changes)
	}
	if diff := cmp.Diff([]string{b.link.Name}, proposed.Moves); diff != "" || proposed.CutsOff != b.link.Name {
		t.Errorf("proposed was %+v", proposed)
	}
	for _, want := range []string{
		"addr show dev LINK: inet 198.18.7.7/24 ", "addr show dev LINK: inet6 2001:db8:77::7/64 scope global nodad", "addr show dev mgmt: inet 198.18.8.8/32",
		"route show vrf mgmt: default via 198.18.7.1 dev LINK proto static metric 100", "route show vrf mgmt: metric 200 mtu 1400", "route show vrf mgmt: unreachable 203.0.113.192/26",
		"-6 route show vrf mgmt: default via fe80::2 dev LINK proto static metric 1024", "route get vrf mgmt 192.0.9.9: via 198.18.7.1 dev LINK table 1000 src 198.18.7.7",
		"route get vrf mgmt 10.77.1.1: dev LINK table 1000", "-6 route get vrf mgmt 2001:db8:77::9: dev LINK table 1000", "-6 route get vrf mgmt 2600::1: via fe80::2 dev LINK table 1000",
	} {
		args, has, _ := strings.Cut(strings.ReplaceAll(want, "LINK", b.link.Name), ": ")
		if out := b.here.Output("ip", strings.Fields(args)...); !strings.Contains(out, has) {
			t.Errorf("ip %s has no %q:\n%s", args, has, out)
		}
	}
	if out := b.here.Output("ip", "route", "show", "vrf", "mgmt") + b.here.Output("ip", "-6", "route", "show", "vrf", "mgmt"); strings.Contains(out, "proto dhcp") || strings.Contains(out, "proto ra") {
		t.Errorf("what is replaced is there:\n%s", out)
	}
	b.here.Output("ping", "-c1", "-W2", "-I", "mgmt", b.far.IPv4.Addr().String())
	s, err := b.Status(context.Background())
	if err != nil || !s.OK || len(s.Promises) != 1 || !strings.Contains(s.Promises[0].Evidence, "10.77.0.0/16 via "+b.far.IPv4.Addr().String()+" dev "+b.link.Name) {
		t.Errorf("status %+v, %v", s, err)
	}
	if again := b.apply(t, b.declaringPolicy()); len(again) != 0 {
		t.Errorf("once more it changes %v", again)
	}
	made := b.made()
	for args, missing := range map[string]string{
		"addr del 198.18.8.8/32 dev mgmt":                                    "198.18.8.8/32 on mgmt is missing",
		"-6 route replace default via fe80::9 dev LINK vrf mgmt metric 1024": "default via fe80::2 dev LINK is missing",
		"route del 10.77.0.0/16 vrf mgmt":                                    "10.77.0.0/16 via " + b.far.IPv4.Addr().String() + " dev LINK is missing",
	} {
		b.here.Output("ip", strings.Fields(strings.ReplaceAll(args, "LINK", b.link.Name))...)
		s, err := b.Status(context.Background())
		if err != nil || s.OK || len(s.Promises) != 1 || s.Promises[0].Verdict != plan.Broken || s.Promises[0].Evidence != strings.ReplaceAll(missing, "LINK", b.link.Name) {
			t.Errorf("ip %s: status %+v, %v", args, s, err)
		}
		b.apply(t, b.declaringPolicy())
		if diff := cmp.Diff(made, b.made()); diff != "" {
			t.Errorf("ip %s is not mended (-before +after)\n%s", args, diff)
		}
	}
	b.here.Output("ip", "-6", "route", "replace", "default", "via", "fe80::1", "dev", b.link.Name, "vrf", "mgmt", "metric", "1024", "proto", "ra") // as it was before
	b.apply(t, b.declaringPolicy())
	b.apply(t, b.mgmtPolicy())
	if diff := cmp.Diff(undeclared, b.here.Routing()); diff != "" {
		t.Errorf("declared no more, it leaves (-before +after)\n%s", diff)
	}
	b.apply(t, b.declaringPolicy())
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, b.here.Routing()); diff != "" {
		t.Errorf("reset left (-before +after)\n%s", diff)
	}
	b.passes(t)
}
