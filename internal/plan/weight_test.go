package plan

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

// shared is a policy whose workloads share limits of all kinds.
const shared = `version: 1
links: {eth0: {scheduler: none, egress: {pps: 5000}}, eth1: {scheduler: none, ingress: {max: 9Mbit}}}
workloads:
  top: {match: [{cgroup: /a}], egress: [{max: 50Mbit, pps: 9000, links: {eth1: {max: 20Mbit}}}, {to: 10.0.0.0/8, max: 1Mbit}]}
  heavy: {match: [{cgroup: /a/b}], egress: {weight: 3, max: 40Mbit}}
  light: {match: [{cgroup: /a/b/d}], egress: {weight: 1}}
  flow: {match: [{port: 80}], egress: {weight: 100}}
  other: {match: [{cgroup: /e}], egress: {max: 10Mbit}}
`

func TestWantedBlocs(t *testing.T) {
	p := parsed(t, shared)
	w := wanted(t, p, hostOf(p), IDs{})
	id := func(name string) ContractID { return w.Contracts[name].ID }
	want := map[Owner]Weight{}
	join := func(name string, weight Weight, in ...Owner) {
		for _, of := range in {
			of.Member = id(name)
			want[of] = weight
		}
	}
	eth0, eth1 := w.Links["eth0"].Index, w.Links["eth1"].Index
	links := []Owner{{Contract: OwnEgress, Link: eth0, Packets: true}, {Contract: OwnIngress, Link: eth1}}
	top := []Owner{{Contract: id("top")}, {Contract: id("top"), Packets: true}, {Contract: id("top"), Link: eth1}, {Contract: id("top"), Toward: 1}}
	join("heavy", 3, append(links, top...)...)
	join("light", 1, append(append(links, top...), Owner{Contract: id("heavy")})...)
	join("flow", 100, links...)
	if diff := gocmp.Diff(want, w.Rules.Blocs); diff != "" {
		t.Error(diff)
	}
	for name, weighted := range map[string]bool{"top": false, "heavy": true, "light": true, "flow": true, "other": false} {
		if got := w.Links["eth0"].Rules.Contracts[id(name)].Weighted; got != weighted {
			t.Errorf("%s: weighted is %v", name, got)
		}
	}
}

func TestMayBeAbove(t *testing.T) {
	for _, c := range []struct {
		upper, lower string
		want         bool
	}{
		{"/a", "/a/b", true},
		{"/a/b", "/a", false},
		{"/a", "/a", false},
		{"/a", "/b/a", false},
		{"/a/**", "/a/b", true},
		{"/a/b", "/a/**", true},
		{"/a/b/c", "/a/**", true},
		{"/b", "/a/**", false},
		{"/a/*", "/a/b/c", true},
		{"/a/job-*", "/a/x/c", true}, // wildcards are not looked at closely
		{"/", "/a", true},
		{"/a", "/", false},
		{"/**/tenant.slice", "/**/web.service", true},
		{"/**/web.service", "/**/db.service", false},
		{"/**/user@1000.service", "/**/db.service", true},
		{"/**/machine.scope", "/**/db.service", true},
		{"/**/web.service", "/system.slice/web.service/pool", true},
		{"/**/web.service", "/system.slice/web.service", false},
		{"/a", "/**/web.service", true},
		{"/**/web@*.service", "/a/b", true},
	} {
		if got := mayBeAbove(c.upper, c.lower); got != c.want {
			t.Errorf("%s above %s: %v", c.upper, c.lower, got)
		}
	}
}

func TestDiffWeights(t *testing.T) {
	for name, c := range map[string]struct {
		edit string // "old=>new"
		have func(*State)
		want string
	}{
		"nothing": {},
		"another weight": {edit: "weight: 100=>weight: 7", want: "~ workload flow: weight 100 -> weight 7 in the egress packets of eth0, " +
			"weight 100 -> weight 7 in the ingress limit of eth1\n"},
		"a limit less": {edit: "{to: 10.0.0.0/8, max: 1Mbit}=>{to: 10.0.0.0/9, max: 1Mbit}", want: "~ workload heavy: weight 3 -> no weight in the limit of top to 10.0.0.0/8, " +
			"no weight -> weight 3 in the limit of top to 10.0.0.0/9\n" +
			"~ workload light: weight 1 -> no weight in the limit of top to 10.0.0.0/8, no weight -> weight 1 in the limit of top to 10.0.0.0/9\n" +
			"~ workload top: egress to 10.0.0.0/8 at most 1Mbit -> not limited, egress to 10.0.0.0/9 not limited -> at most 1Mbit\n"},
		"one that a link does not ask for": {have: func(s *State) {
			drift(s, func(l *LinkState) {
				p := l.Rules.Contracts[s.Contracts["flow"].ID]
				p.Weighted = false
				l.Rules.Contracts[s.Contracts["flow"].ID] = p
			})
		}, want: "~ workload flow: eth0 not limited -> not limited, with a weight\n"},
		"one of nobody's": {have: func(s *State) {
			s.Rules.Blocs[Owner{Contract: s.Contracts["other"].ID, Member: 700}] = 9
		}, want: "~ contract 700: is nobody's: weight 9 in the limit of other\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := parsed(t, shared)
			first := wanted(t, p, hostOf(p), IDs{})
			have := wanted(t, p, hostOf(p), IDs{}).State
			if c.have != nil {
				c.have(&have)
			}
			old, edited, _ := strings.Cut(c.edit, "=>")
			q := parsed(t, strings.Replace(shared, old, edited, 1))
			var text strings.Builder
			for _, d := range Diff(have, wanted(t, q, hostOf(q), first.IDs)) {
				text.WriteString(d.String() + "\n")
			}
			if diff := gocmp.Diff(c.want, text.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheckWeight(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		lacks  func(*Features)
		want   string
	}{
		"it shares nothing": {policy: "links: {eth0: {}}\nworkloads:\n  a: {match: [{cgroup: /a}], egress: {weight: 3}}\n  b: {match: [{cgroup: /e}], egress: {max: 1Mbit}}",
			want: `workload "a": its weight counts nowhere: it shares a limit with nobody`},
		"its own limit is none that it shares": {policy: "links: {eth0: {}}\nworkloads:\n  a: {match: [{cgroup: /a}], egress: {weight: 3, max: 1Mbit}}",
			want: `workload "a": its weight counts nowhere: it shares a limit with nobody`},
		"what sockets receive is none": {policy: "links: {eth0: {}}\nworkloads:\n  a: {match: [{cgroup: /a/b}], egress: {weight: 3}}\n  b: {match: [{cgroup: /a}], ingress: {max: 1Mbit}}",
			want: `workload "a": its weight counts nowhere: it shares a limit with nobody`},
		"a filter": {policy: "links: {eth0: {egress: {max: 1Mbit, method: police}}}\nworkloads:\n  a: {match: [{port: 80}], egress: {weight: 3}}",
			want: `workload "a": its weight counts for nothing in a limit of link "eth0": police holds that, which knows no flows`},
		"a kernel that can not pace": {policy: "links: {eth0: {egress: {max: 1Mbit}}}\nworkloads:\n  a: {match: [{port: 80}], egress: {weight: 3}}",
			lacks: func(f *Features) { f.Atomics = false },
			want:  `workload "a": its weight counts for nothing in a limit of link "eth0": police holds that, which knows no flows`},
		"times of departure": {policy: "links: {eth0: {}}\nworkloads:\n  a: {match: [{cgroup: /a/b}], egress: {weight: 3}}\n  b: {match: [{cgroup: /a}], egress: {max: 1Mbit, method: edt}}",
			want: `workload "a": its weight counts for nothing in a limit of workload "b": times of departure hold that`},
		"a class": {policy: "links: {eth0: {rate: 1Gbit}}\nworkloads:\n  a: {match: [{cgroup: /a/b}], egress: {weight: 3}}\n  b: {match: [{cgroup: /a}], egress: {max: 1Mbit, method: htb}}",
			want: `workload "a": its weight counts for nothing in a limit of workload "b": a class of htb holds that`},
		"a link's":       {policy: "links: {eth0: {egress: {max: 1Mbit}}}\nworkloads:\n  a: {match: [{port: 80}], egress: {weight: 3}}"},
		"a process, too": {policy: "links: {eth0: {}}\nworkloads:\n  a: {match: [{pid: 7}], egress: {weight: 3}}\n  b: {match: [{cgroup: /a}], egress: {max: 1Mbit}}"},
	} {
		t.Run(name, func(t *testing.T) {
			p := parsed(t, "version: 1\n"+c.policy+"\n")
			f := hostOf(p)
			if c.lacks != nil {
				c.lacks(&f.Features)
			}
			var got []string
			for _, e := range Check(p, f) {
				got = append(got, e.Message)
			}
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("%q, want %q", text, c.want)
			}
		})
	}
}

// TestExplainWeight has the outermost workload with a weight below each limit count.
func TestExplainWeight(t *testing.T) {
	p := parsed(t, shared)
	w := wanted(t, p, hostOf(p), IDs{})
	s := Subject{Cgroups: []CgroupMatch{{"/a/b/d", v2ID(4)}, {"/a/b", v2ID(2)}, {"/a", v2ID(1)}}}
	all := Explain(s, w.State)
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	for i, want := range []string{"", "where all of light has weight 1", "where all of heavy has weight 3"} {
		if got := strings.Join(all[i].Limits, ", "); !strings.HasSuffix(got, want) || want == "" && strings.Contains(got, "weight") {
			t.Errorf("%s: %s", all[i].Workload, got)
		}
	}
	if got := w.WeightOn(w.Links["eth0"].Index, all); !gocmp.Equal(got, []string{"where all of heavy has weight 3"}) {
		t.Errorf("on eth0: %v", got)
	}
	if got := w.WeightOn(w.Links["eth1"].Index, all); got != nil {
		t.Errorf("on eth1, where nothing that leaves is limited: %v", got)
	}
}

func TestWeighings(t *testing.T) {
	p := parsed(t, shared)
	w := wanted(t, p, hostOf(p), IDs{})
	top, light := w.Contracts["top"].ID, w.Contracts["light"].ID
	held := map[Owner]Held{
		{Contract: top, Member: light}:                {Passed: 1, Last: 37_216_000},
		{Contract: top, Member: light, Packets: true}: {Passed: 1, Last: 1234},
		{Contract: top}:                               {Passed: 2, Last: 40_000_000},
	}
	var got []string
	for _, x := range w.Weighings(held) {
		got = append(got, x.Workload+": "+x.String())
	}
	want := []string{"light: weight 1 in the limit of top: 37.2Mbit in the last 5 s", "light: weight 1 in the packets of top: 1230 packets/s in the last 5 s"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text := Terms(policy.Contract{Priority: policy.Priority{Default: policy.Unset}, Egress: policy.Egress{Weight: 3}}); text != "weight 3" {
		t.Error(text)
	}
}
