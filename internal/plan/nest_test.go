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

// said puts limits that do not bind all into lines.
func said(all []Unbound) string {
	var lines []string
	for _, u := range all {
		line := fmt.Sprintf("%d:%d: %s", u.Line, u.Column, u.Message)
		if u.Tagged != strings.Contains(u.Message, "has a tag") {
			line += fmt.Sprintf(" (tagged: %v)", u.Tagged)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestUnbound(t *testing.T) {
	const (
		none = ""
		all  = ", egress: {max: 50Mbit}"
		here = ", egress: {links: {eth1: {max: 1Mbit}}}"
		gets = ", ingress: {max: 1Mbit}"
		both = ", egress: {max: 50Mbit, links: {eth1: {max: 10Mbit}}}"
		tag  = " for what has a tag (pid, weir set, weir run): limits nest 3 deep, and 3 other workloads claim nearer cgroups"
		far  = ": limits nest 3 deep, and 4 other workloads claim nearer cgroups"
	)
	for name, c := range map[string]struct {
		egress []string // from the root down
		want   string
	}{
		"as many as can meet":        {[]string{both, both, both}, ""},
		"none that is the fourth":    {[]string{none, both, both, both}, ""},
		"nobody has limits":          {[]string{none, none, none, none, none, none, none}, ""},
		"the fourth of all":          {[]string{all, all, all, all}, `7:25: cgroup /x/x/x: the limit of workload "w0" does not hold there` + tag},
		"the fourth, and alone":      {[]string{here, none, none, none}, `7:25: cgroup /x/x/x: the limit of workload "w0" does not hold there` + tag},
		"the fourth, of its sockets": {[]string{gets, none, none, none}, `7:25: cgroup /x/x/x: the limit of workload "w0" does not hold there` + tag},
		"the fifth":                  {[]string{all, none, none, none, none}, `8:25: cgroup /x/x/x/x: the limit of workload "w0" does not hold there` + far},
		"the fifth, and one without": {[]string{none, here, none, none, all}, `8:25: cgroup /x/x/x/x: the limit of workload "w1" does not hold there` + tag},
		"in more than one cgroup": {[]string{all, all, none, none, none, none, none}, `8:25: cgroup /x/x/x/x and 2 more: the limit of workload "w0" does not hold there` + far + `
9:25: cgroup /x/x/x/x/x and 1 more: the limit of workload "w1" does not hold there` + far},
	} {
		t.Run(name, func(t *testing.T) {
			p, f := nested(t, "eth0: {}, eth1: {egress: {max: 900Mbit}}", c.egress...)
			if diff := gocmp.Diff(c.want, said(wanted(t, p, f, IDs{}).Unbound)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// One pattern that matches many cgroups is one finding; what a better claim takes
// from it does not count, and neither does another hierarchy.
func TestUnboundOfPatterns(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {}}
workloads:
  deep: {match: [{cgroup: "/pods/*/*/deep"}], priority: 1}
  pods: {match: [{cgroup: "/pods/*"}, {unit: one}], priority: 1}
  top: {match: [{cgroup: /pods/**}], priority: 1}
  root: {match: [{cgroup: /}], egress: {max: 1Mbit}}
  old: {match: [{cgroup: "memory:/pods"}], priority: 1}
`)
	f := hostOf(p)
	at := func(w, s int, found ...CgroupMatch) { f.Cgroups[p.Workloads[w].Match[s].Cgroup] = found }
	at(0, 0, CgroupMatch{"/pods/one/a/deep", 6}, CgroupMatch{"/pods/two/a/deep", 7})
	at(1, 0, CgroupMatch{"/pods/one", 3}, CgroupMatch{"/pods/two", 4})
	at(1, 1, CgroupMatch{"/pods/one", 3})
	at(2, 0, CgroupMatch{"/pods", 2}, CgroupMatch{"/pods/one", 3}, CgroupMatch{"/pods/two", 4})
	at(3, 0, CgroupMatch{"/", 1})
	at(4, 0, CgroupMatch{"/pods", 2})
	const want = `4:27: cgroup /pods/one/a/deep and 1 more: the limit of workload "root" does not hold there` +
		` for what has a tag (pid, weir set, weir run): limits nest 3 deep, and 3 other workloads claim nearer cgroups`
	if diff := gocmp.Diff(want, said(wanted(t, p, f, IDs{}).Unbound)); diff != "" {
		t.Error(diff)
	}
	// What was set has no place in the policy: the limit itself has.
	p.Workloads[0].Match[0].Span = policy.Span{}
	if got := said(wanted(t, p, f, IDs{}).Unbound); !strings.HasPrefix(got, "7:32: cgroup /pods/one/a/deep") {
		t.Error(got)
	}
	root := &p.Workloads[3].Contract
	root.Egress, root.Ingress = policy.Egress{}, policy.Bandwidth{Limit: policy.Limit{Max: 1e6}, Span: policy.Span{Line: 70, Column: 8}}
	if got := said(wanted(t, p, f, IDs{}).Unbound); !strings.HasPrefix(got, "70:8: cgroup /pods/one/a/deep") {
		t.Errorf("of sockets: %s", got)
	}
}

// A limit that does not bind all is not kept, and one that binds all but what may
// be tagged can not be shown to be. What else is broken comes first.
func TestJudgeUnbound(t *testing.T) {
	for name, c := range map[string]struct {
		depth    int
		verdict  Verdict
		evidence string
	}{
		"all":           {3, Kept, "read back: at most 50Mbit; no packet yet"},
		"all untagged":  {4, Unprovable, "read back: at most 50Mbit; no packet yet; cgroup /x/x/x: the limit"},
		"not the fifth": {5, Broken, "cgroup /x/x/x/x: the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := make([]string, c.depth)
			limits[0] = ", egress: {max: 50Mbit, links: {eth0: {max: 50Mbit}}}, ingress: {max: 50Mbit, method: pace}"
			p, f := nested(t, "eth0: {}", limits...)
			w := wanted(t, p, f, IDs{})
			id, eth0 := w.Contracts["w0"].ID, w.Links["eth0"].Index
			held := map[Owner]Held{{Contract: id}: {}, {Contract: id, Link: eth0}: {}, {Contract: id, Link: AtSockets}: {}}
			judged := 0
			for _, j := range Judge(p, w, nil, Measured{Held: held}) {
				switch {
				case j.Promise == PromisePriority:
					if j.Verdict == Broken {
						t.Errorf("%+v", j)
					}
				case j.Verdict != c.verdict || !strings.HasPrefix(j.Evidence, c.evidence):
					t.Errorf("%s: %s", j.Verdict, j.Evidence)
				default:
					judged++
				}
			}
			if judged != 3 {
				t.Errorf("%d limits are judged as they should", judged)
			}
			held[Owner{Contract: id}] = Held{Passed: 1, Last: 9e9, Most: 9e9}
			for _, j := range Judge(p, w, nil, Measured{Held: held}) {
				if j.Promise == PromiseEgress && j.Link == EveryLink && (j.Verdict != Broken || !strings.HasPrefix(j.Evidence, "read back: at most 50Mbit; 9Gbit")) {
					t.Errorf("above the limit: %s: %s", j.Verdict, j.Evidence)
				}
			}
		})
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
