package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/policy"
)

// toTwo is a policy with prefixes of their own and two that share a limit.
const toTwo = `version: 1
links: {eth0: {scheduler: none}}
workloads:
  held:
    match: [{port: 80}]
    egress: [{max: 5Gbit}, {to: 10.0.0.0/8, max: 1.000000007Gbit}, {to: ["2001:db8::/32", 192.0.2.0/24], max: 50Mbit, pps: 5000}]
  other: {match: [{port: 81}], egress: [{to: 10.0.0.0/8, pps: 10}]}
`

func TestWantedToward(t *testing.T) {
	p := parsed(t, toTwo)
	w := wanted(t, p, hostOf(p), IDs{})
	held, other := w.Contracts["held"].ID, w.Contracts["other"].ID
	prefix := func(id ContractID, text string) PrefixOf { return PrefixOf{id, netip.MustParsePrefix(text)} }
	two := Toward{2, Limit{Max: 50_000_000, PPS: 5000}}
	want := map[PrefixOf]Toward{
		prefix(held, "10.0.0.0/8"): {1, Limit{Max: 1_000_000_000}}, prefix(held, "192.0.2.0/24"): two, prefix(held, "2001:db8::/32"): two,
		prefix(other, "10.0.0.0/8"): {1, Limit{PPS: 10}},
	}
	if diff := cmp.Diff(want, w.Rules.Toward, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	rules := w.Links["eth0"].Rules.Contracts
	if h, o := rules[held], rules[other]; !h.Limited || !h.Toward || o.Limited || !o.Toward {
		t.Errorf("held means %+v, other %+v", h, o)
	}
	if together, here := w.CountLimits(); together != 5 || here != 0 {
		t.Errorf("%d limits of all links together, %d of one", together, here)
	}
	if len(w.Unbound) > 0 {
		t.Errorf("%v", w.Unbound)
	}
}

func TestDiffToward(t *testing.T) {
	for name, c := range map[string]struct {
		edit string // "old=>new"
		have func(*State)
		want string
	}{
		"nothing":       {},
		"another limit": {edit: "max: 1.000000007Gbit=>max: 2Gbit", want: "~ workload held: egress to 10.0.0.0/8 at most 1Gbit -> at most 2Gbit\n"},
		"another prefix": {edit: "{to: 10.0.0.0/8, max=>{to: 10.0.0.0/9, max",
			want: "~ workload held: egress to 10.0.0.0/8 at most 1Gbit -> not limited, egress to 10.0.0.0/9 not limited -> at most 1Gbit\n"},
		"one prefix less": {edit: `["2001:db8::/32", 192.0.2.0/24]=>192.0.2.0/24`, want: "~ workload held: egress to 192.0.2.0/24 not limited -> at most 50Mbit and 5000 packets/s, " +
			"egress to 192.0.2.0/24 or 2001:db8::/32 at most 50Mbit and 5000 packets/s -> not limited\n"},
		"one that is gone": {have: func(s *State) {
			delete(s.Rules.Toward, PrefixOf{s.Contracts["other"].ID, netip.MustParsePrefix("10.0.0.0/8")})
		}, want: "~ workload other: egress to 10.0.0.0/8 not limited -> at most 10 packets/s\n"},
		"one that a link does not ask for": {have: func(s *State) {
			drift(s, func(l *LinkState) {
				p := l.Rules.Contracts[s.Contracts["held"].ID]
				p.Toward = false
				l.Rules.Contracts[s.Contracts["held"].ID] = p
			})
		}, want: "~ workload held: eth0 limited -> limited, to prefixes too\n"},
		"one of nobody's": {have: func(s *State) {
			s.Rules.Toward[PrefixOf{700, netip.MustParsePrefix("10.0.0.0/8")}] = Toward{1, Limit{Max: 1e9}}
		}, want: "~ contract 700: is nobody's: egress to 10.0.0.0/8 at most 1Gbit\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := parsed(t, toTwo)
			first := wanted(t, p, hostOf(p), IDs{})
			have := wanted(t, p, hostOf(p), IDs{}).State
			if c.have != nil {
				c.have(&have)
			}
			old, new, _ := strings.Cut(c.edit, "=>")
			q := parsed(t, strings.Replace(toTwo, old, new, 1))
			var got strings.Builder
			for _, d := range Diff(have, wanted(t, q, hostOf(q), first.IDs)) {
				got.WriteString(d.String() + "\n")
			}
			if diff := cmp.Diff(c.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTowardNumbers walks through many policies: prefixes that stay keep their number,
// and none has one that others had in the policy before.
func TestTowardNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ids IDs
		for range rapid.IntRange(1, 20).Draw(t, "applies") {
			p := &policy.Policy{Workloads: []policy.Workload{{Name: "w"}}}
			for _, bits := range rapid.SliceOfDistinct(rapid.IntRange(1, 6), rapid.ID[int]).Draw(t, "prefixes") {
				prefix := netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), bits).Masked()
				e := &p.Workloads[0].Contract.Egress
				e.Toward = append(e.Toward, policy.Toward{Prefixes: []netip.Prefix{prefix}})
			}
			before := ids.Toward["w"]
			ids.Toward = ids.towardNumbers(p)
			now := ids.Toward["w"]
			if len(now) != len(p.Workloads[0].Contract.Egress.Toward) {
				t.Fatalf("numbers %v of %v", now, p)
			}
			taken := map[uint16]bool{}
			for to, n := range now {
				was, stays := before[to]
				for other, had := range before {
					if had == n && other != to {
						t.Fatalf("%s has %d, which %s had", to, n, other)
					}
				}
				if n == 0 || taken[n] || stays && n != was {
					t.Fatalf("numbers %v, before %v", now, before)
				}
				taken[n] = true
			}
		}
	})
}

func TestJudgeToward(t *testing.T) {
	p := parsed(t, toTwo)
	w := wanted(t, p, hostOf(p), IDs{})
	id := w.Contracts["held"].ID
	held := map[Owner]Held{
		{Contract: id}:                           {Passed: 7e6, Last: 4e7, Most: 5e7},
		{Contract: id, Toward: 1}:                {Passed: 6e6, Last: 3e7, Most: 3e7},
		{Contract: id, Toward: 2}:                {Passed: 1e6, Last: 9e7, Most: 9e7},
		{Contract: id, Toward: 2, Packets: true}: {Passed: 700},
	}
	var got []string
	for _, j := range Judge(p, w, nil, Measured{Held: held}) {
		if j.Workload == "held" {
			got = append(got, j.Terms()+": "+string(j.Verdict))
		}
	}
	want := []string{
		"at most 5Gbit: kept", "to 10.0.0.0/8 at most 1Gbit: kept", "to 192.0.2.0/24 or 2001:db8::/32 at most 50Mbit: broken",
		"to 192.0.2.0/24 or 2001:db8::/32 at most 5000 packets/s: kept",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
