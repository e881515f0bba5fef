package vrf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
)

// The tables of VRFs are asked before the local one, what others change about that is mended, and in the end the rules
// are those from before, whatever these were.
func TestRules(t *testing.T) {
	want := map[string]plan.VRF{"mgmt": {Table: 1000}}
	for name, c := range map[string]struct {
		first []string // what others had changed before
		asks  int      // rules that ask the tables of VRFs
	}{
		"as the kernel has them":      {nil, 1},
		"others had moved local":      {[]string{"rule add pref 500 lookup local", "rule del pref 0", "-6 rule add pref 32000 lookup local", "-6 rule del pref 0"}, 1},
		"one was before the kernel's": {[]string{"rule add pref 900 l3mdev protocol kernel", "-6 rule add pref 900 l3mdev protocol kernel"}, 2},
		"one was behind the kernel's": {[]string{"rule add pref 1100 l3mdev protocol kernel", "-6 rule add pref 1100 l3mdev protocol kernel"}, 2},
		"the kernel's was there":      {[]string{"rule add pref 1000 l3mdev protocol kernel", "-6 rule add pref 1000 l3mdev protocol kernel"}, 1},
		"there had been a VRF":        {[]string{"link add early type vrf table 77", "link del early", "rule del pref 1000", "-6 rule del pref 1000"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			for _, args := range c.first {
				b.ip(args)
			}
			before := b.all()
			b.mustReach(want)
			for _, family := range []string{"-4", "-6"} {
				rules := b.ip(family + " rule")
				l3mdev, local := strings.Index(rules, "lookup [l3mdev-table]"), strings.Index(rules, "from all lookup local")
				if l3mdev < 0 || local < l3mdev || strings.Count(rules, "lookup local") != 1 || strings.Count(rules, "l3mdev") != c.asks {
					t.Errorf("rules of %s:\n%s", family, rules)
				}
			}
			if c.first == nil {
				b.drifts(want, [][2]string{
					{"rule del pref 1000", "no rule asks the tables of VRFs (IPv4)"},
					{"-6 rule del pref 1000", "no rule asks the tables of VRFs (IPv6)"},
					{"rule add pref 0 lookup local protocol kernel", "the local table is not asked after those of VRFs (IPv4)"},
					{"-6 rule del pref 32765", "the local table is not asked after those of VRFs (IPv6)"},
				})
			}
			b.mustReach(nil)
			if diff := cmp.Diff(before, b.all()); diff != "" {
				t.Errorf("left (-before +after)\n%s", diff)
			}
		})
	}
}

// A rule for an address sends what comes from it by its VRF's table, once, and goes with the VRF.
func TestSourceRules(t *testing.T) {
	b := newBed(t)
	want := map[string]plan.VRF{"mgmt": {Table: 1000, Links: []string{b.link.Name}}}
	before := b.all()
	b.mustReach(want)
	from4, from6 := b.link.IPv4.Addr().String(), b.link.IPv6.Addr().String()
	for args, has := range map[string]string{
		"rule": "1001:\tfrom " + from4 + " lookup 1000", "-6 rule": "1001:\tfrom " + from6 + " lookup 1000",
		"route get FAR4 from " + from4: "table 1000", "-6 route get FAR6 from " + from6: "table 1000",
	} {
		if out := b.ip(args); strings.Count(out, has) != 1 {
			t.Errorf("ip %s has no %q, or some:\n%s", args, has, out)
		}
	}
	b.drifts(want, [][2]string{
		{"rule del pref 1001", "no rule sends what comes from " + from4 + " by its table"},
		{"-6 rule del pref 1001", "no rule sends what comes from " + from6 + " by its table"},
	})
	b.mustReach(nil)
	if diff := cmp.Diff(before, b.all()); diff != "" {
		t.Errorf("left (-before +after)\n%s", diff)
	}
}
