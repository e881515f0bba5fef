package plan

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/policy"
)

// nested is a policy whose workloads w0, w1, … claim /, /x, /x/x, …, each with
// the limits that are its line, and its host.
func nested(t testing.TB, links string, egress ...string) (*policy.Policy, Facts) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nlinks: {%s}\nworkloads:\n", links)
	for i, limits := range egress {
		fmt.Fprintf(&b, "  w%d: {match: [{cgroup: %s}], priority: 1%s}\n", i, nestedPath(i), limits)
	}
	p := parsed(t, b.String())
	f := hostOf(p)
	for i, w := range p.Workloads {
		f.Cgroups[w.Match[0].Cgroup] = []CgroupMatch{{nestedPath(i), uint64(100 + i)}}
	}
	return p, f
}

func nestedPath(depth int) string {
	if depth == 0 {
		return "/"
	}
	return strings.Repeat("/x", depth)
}

func TestCheckNesting(t *testing.T) {
	const (
		none  = ""
		all   = ", egress: {max: 50Mbit}"
		here  = ", egress: {links: {eth1: {max: 1Mbit}}}"
		both  = ", egress: {max: 50Mbit, links: {eth1: {max: 10Mbit}}}"
		other = ", egress: {links: {eth0: {max: 1Mbit}}}"

		links = "eth0: {}, eth1: {}"
		own   = "eth0: {ingress: {max: 1Gbit}}, eth1: {egress: {max: 900Mbit}, ingress: {max: 1Gbit}}"
		leave = " | leave one of them out, or match fewer of the cgroups on this path"
		move  = " | match fewer of the cgroups between, or move the limit to a nearer one"
	)
	for name, c := range map[string]struct {
		links  string
		egress []string // from the root down
		want   string
	}{
		"five of four workloads":        {links, []string{all, both, all, all}, ""},
		"one each, and the link's own":  {own, []string{all, all, all, all}, ""},
		"two each of two, and the link": {own, []string{none, both, none, both}, ""},
		"a sixth is on another link":    {links, []string{both, both, other, all}, ""},
		"six, two of each":              {links, []string{both, both, both}, `6:25: cgroup /x/x: a packet on link "eth1" would be below 6 limits, and at most 5 can hold: workload "w2" (at most 50Mbit, eth1 at most 10Mbit), workload "w1" (at most 50Mbit, eth1 at most 10Mbit), workload "w0" (at most 50Mbit, eth1 at most 10Mbit)` + leave},
		"six with the link's own":       {own, []string{here, both, all, all}, `7:25: cgroup /x/x/x: a packet on link "eth1" would be below 6 limits, and at most 5 can hold: workload "w3" (at most 50Mbit), workload "w2" (at most 50Mbit), workload "w1" (at most 50Mbit, eth1 at most 10Mbit), workload "w0" (eth1 at most 1Mbit), the link (at most 900Mbit)` + leave},
		"on the last link alone":        {"eth0: {}, eth1: {egress: {max: 1Gbit}}", []string{both, both, all}, `6:25: cgroup /x/x: a packet on link "eth1" would be below 6 limits, and at most 5 can hold: workload "w2" (at most 50Mbit), workload "w1" (at most 50Mbit, eth1 at most 10Mbit), workload "w0" (at most 50Mbit, eth1 at most 10Mbit), the link (at most 1Gbit)` + leave},
		"one with a limit too far":      {links, []string{all, none, none, none, none}, `8:25: cgroup /x/x/x/x: the limit of workload "w0" can not hold there: more than 3 other workloads claim the cgroups between` + move},
		"one with a limit on a link":    {links, []string{here, none, none, none, all}, `8:25: cgroup /x/x/x/x: the limit of workload "w0" can not hold there: more than 3 other workloads claim the cgroups between` + move},
		"too far, and without limits":   {links, []string{none, all, none, none, all}, ""},
		"nobody has limits":             {own, []string{none, none, none, none, none, none, none}, ""},
		"two that are too far, per path": {links, []string{all, all, none, none, none, none}, `8:25: cgroup /x/x/x/x: the limit of workload "w0" can not hold there: more than 3 other workloads claim the cgroups between` + move + `
9:25: cgroup /x/x/x/x/x: the limit of workload "w1" can not hold there: more than 3 other workloads claim the cgroups between` + move + `
9:25: cgroup /x/x/x/x/x: the limit of workload "w0" can not hold there: more than 3 other workloads claim the cgroups between` + move},
	} {
		t.Run(name, func(t *testing.T) {
			p, f := nested(t, c.links, c.egress...)
			_, errs := Wanted(p, f, IDs{}, nil)
			if diff := gocmp.Diff(c.want, findings(errs)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// One pattern that matches many cgroups is one finding; what a better claim takes
// from it does not count.
func TestCheckNestingOfPatterns(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {}}
workloads:
  pods: {match: [{cgroup: "/pods/*"}, {unit: one}], egress: {max: 1Mbit, links: {eth0: {max: 1Mbit}}}}
  top: {match: [{cgroup: /pods/**}, {cgroup: /}], egress: {max: 1Mbit, links: {eth0: {max: 1Mbit}}}}
  old: {match: [{cgroup: "memory:/pods"}], egress: {max: 1Mbit, links: {eth0: {max: 1Mbit}}}}
  most: {match: [{cgroup: /most}], egress: {max: 1Mbit, links: {eth0: {max: 1Mbit}}}}
`)
	f := hostOf(p)
	at := func(w, s int, found ...CgroupMatch) { f.Cgroups[p.Workloads[w].Match[s].Cgroup] = found }
	at(0, 0, CgroupMatch{"/pods/one", 3}, CgroupMatch{"/pods/two", 4})
	at(0, 1, CgroupMatch{"/pods/one", 3})
	at(1, 0, CgroupMatch{"/pods", 2}, CgroupMatch{"/pods/one", 3}, CgroupMatch{"/pods/two", 4})
	at(1, 1, CgroupMatch{"/", 1})
	at(2, 0, CgroupMatch{"/pods", 2}) // in its own hierarchy
	at(3, 0, CgroupMatch{"/most", 5})
	if _, errs := Wanted(p, f, IDs{}, nil); len(errs) > 0 {
		t.Fatalf("four limits in all, and %v", errs)
	}
	p.Links[0].Egress.Max = 1e6
	if _, errs := Wanted(p, f, IDs{}, nil); len(errs) > 0 {
		t.Fatalf("five limits in all, and %v", errs)
	}
	p.Workloads[3].Match[0].Cgroup.Pattern = "/pods/*/deep"
	at(3, 0, CgroupMatch{"/pods/one/deep", 6}, CgroupMatch{"/pods/two/deep", 7})
	want := `7:27: cgroup /pods/one/deep: a packet on link "eth0" would be below 7 limits, and at most 5 can hold: ` +
		`workload "most" (at most 1Mbit, eth0 at most 1Mbit), workload "pods" (at most 1Mbit, eth0 at most 1Mbit), ` +
		`workload "top" (at most 1Mbit, eth0 at most 1Mbit), the link (at most 1Mbit)` +
		" | leave one of them out, or match fewer of the cgroups on this path"
	_, errs := Wanted(p, f, IDs{}, nil)
	if got := findings(errs); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// Whatever the kernel side walks up through, the first contract is a socket's own,
// the nearest three others bind it, and none twice.
func TestLineage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		way := rapid.SliceOf(rapid.Map(rapid.IntRange(0, 6), func(n int) ContractID { return FirstID + ContractID(n) })).Draw(t, "way up")
		var l lineage
		var bind []ContractID
		for _, id := range way {
			if l.join(id) {
				bind = append(bind, id)
			}
		}
		var want []ContractID
		seen := map[ContractID]bool{}
		for i, id := range way {
			if i > 0 && !seen[id] && len(want) < 3 {
				want = append(want, id)
			}
			seen[id] = true
		}
		if diff := gocmp.Diff(want, bind); diff != "" {
			t.Fatal(diff)
		}
	})
}
