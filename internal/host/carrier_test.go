package host

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/testutil"
)

// The link of a route is found, and with it those that it stands on.
func TestCarriers(t *testing.T) {
	testutil.Needs(t, "root", "ip")
	here, there := testutil.NewNamespace(t), testutil.NewNamespace(t)
	a, b := testutil.Veth(t, here, there, testutil.VethOptions{})
	ip := func(args ...string) { t.Helper(); here.Output("ip", args...) }
	var at netip.Addr
	carriers := func(to string) (names []string) {
		t.Helper()
		var err error
		here.Do(func() { names, err = Carriers(netip.MustParseAddr(to), at) })
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	ip("route", "add", "192.0.2.0/24", "via", b.IPv4.Addr().String())
	for to, want := range map[string][]string{
		b.IPv4.Addr().String(): {a.Name},
		b.IPv6.Addr().String(): {a.Name},
		"192.0.2.9":            {a.Name},
		"::ffff:192.0.2.9":     {a.Name},
		"127.0.0.1":            {"lo"},
		"fe80::1%" + a.Name:    {a.Name},
	} {
		if diff := cmp.Diff(want, carriers(to)); diff != "" {
			t.Errorf("to %s: %s", to, diff)
		}
	}
	t.Run("VLAN", func(t *testing.T) {
		testutil.Needs(t, "vlan link")
		ip("link", "add", "link", a.Name, "name", "v7", "up", "type", "vlan", "id", "7")
		ip("addr", "add", "10.99.7.1/24", "dev", "v7")
		if diff := cmp.Diff([]string{"v7", a.Name}, carriers("10.99.7.2")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("bridge", func(t *testing.T) {
		testutil.Needs(t, "bridge link")
		p, _ := testutil.Veth(t, here, there, testutil.VethOptions{NoIP: true})
		ip("link", "add", "br7", "type", "bridge")
		ip("link", "set", p.Name, "master", "br7")
		ip("link", "set", "br7", "up")
		ip("addr", "add", "10.99.8.1/24", "dev", "br7")
		if diff := cmp.Diff([]string{"br7", p.Name}, carriers("10.99.8.2")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("VRF", func(t *testing.T) {
		testutil.Needs(t, "vrf link")
		c, _ := testutil.Veth(t, here, there, testutil.VethOptions{})
		ip("link", "add", "mgmt", "type", "vrf", "table", "1000")
		ip("link", "set", "mgmt", "up")
		ip("link", "set", c.Name, "vrf", "mgmt")
		ip("route", "add", "192.0.2.0/25", "dev", c.Name, "vrf", "mgmt")
		for from, want := range map[netip.Addr]string{{}: a.Name, a.IPv4.Addr(): a.Name, c.IPv4.Addr(): c.Name} {
			at = from
			if diff := cmp.Diff([]string{want}, carriers("192.0.2.9")); diff != "" {
				t.Errorf("from %s: %s", from, diff)
			}
		}
	})
	var err error
	if here.Do(func() { _, err = Carriers(netip.MustParseAddr("203.0.113.1"), netip.Addr{}) }); err == nil {
		t.Error("a route was found that is not there")
	}
}
