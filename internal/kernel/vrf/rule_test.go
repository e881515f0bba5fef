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
	b := newBed(t)
	want := map[string]plan.VRF{"mgmt": {Table: 1000}}
	for name, first := range map[string][]string{
		"as the kernel has them": nil,
		"others had moved local": {"rule add pref 500 lookup local", "rule del pref 0", "-6 rule add pref 32000 lookup local", "-6 rule del pref 0"},
		"there was one already":  {"rule add pref 900 l3mdev protocol kernel", "-6 rule add pref 900 l3mdev protocol kernel"},
	} {
		for _, args := range first {
			b.ip(args)
		}
		before := b.all()
		b.mustReach(want)
		for _, family := range []string{"-4", "-6"} {
			rules := b.ip(family + " rule")
			l3mdev, local := strings.Index(rules, "lookup [l3mdev-table]"), strings.Index(rules, "from all lookup local")
			if l3mdev < 0 || local < l3mdev || strings.Count(rules, "lookup local") != 1 || strings.Count(rules, "l3mdev") != 1 {
				t.Errorf("%s: rules of %s:\n%s", name, family, rules)
			}
		}
		if name == "as the kernel has them" {
			b.drifts(want, [][2]string{
				{"rule del pref 1000", "no rule asks the tables of VRFs (IPv4)"},
				{"-6 rule del pref 1000", "no rule asks the tables of VRFs (IPv6)"},
				{"rule add pref 0 lookup local protocol kernel", "the local table is not asked after those of VRFs (IPv4)"},
				{"-6 rule del pref 32765", "the local table is not asked after those of VRFs (IPv6)"},
			})
		}
		b.mustReach(nil)
		if diff := cmp.Diff(before, b.all()); diff != "" {
			t.Errorf("%s: left (-before +after)\n%s", name, diff)
		}
		for _, args := range first {
			b.ip(strings.NewReplacer(" add ", " del ", " del ", " add ", "pref 0", "pref 0 lookup local protocol kernel").Replace(args))
		}
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
