package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

func TestJudgeLimit(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {rate: 100Mbit, scheduler: htb}, eth1: {scheduler: none}}
workloads:
  ssh: {match: [{port: 22}], priority: {eth0: 15}}
  held: {match: [{port: 80}], egress: {max: 50Mbit}}
  both: {match: [{port: 443}], egress: {max: 1Gbit}, priority: {eth0: 2}}
`)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	kept := Held{Bytes: 7e6, Dropped: 12, Marked: 3, Last: 49_834_567, Most: 50_149_999}
	const text = "read back: at most 50Mbit; 49.8Mbit in the last 5 s, 50.1Mbit in the busiest; 12 packets dropped, 3 marked"
	of := func(verdict Verdict, evidence string) Judgement {
		return Judgement{"held", EveryLink, PromiseEgress, policy.Unset, 5e7, verdict, evidence, Traffic{4988, 7e6}}
	}
	id := w.Contracts["held"].ID
	seen := map[string]map[ContractID]Traffic{"eth0": {id: {4000, 5e6}}, "eth1": {id: {1000, 2e6}}, "eth9": {id: {7, 7}}}
	for name, c := range map[string]struct {
		have func(*State)
		held func(*Held)
		want Judgement
	}{
		"kept": {want: of(Kept, text)},
		"all that a window may have": {held: func(h *Held) { h.Last, h.Most = 51_104_857, 51_104_857 },
			want: of(Kept, "read back: at most 50Mbit; 51.1Mbit in the last 5 s, 51.1Mbit in the busiest; 12 packets dropped, 3 marked")},
		"more than a window may have": {held: func(h *Held) { h.Last, h.Most = 51_104_858, 51_104_858 },
			want: of(Broken, "read back: at most 50Mbit; 51.1Mbit in the last 5 s, 51.1Mbit in the busiest; 12 packets dropped, 3 marked")},
		"more once, and not now": {held: func(h *Held) { h.Last, h.Most, h.Marked = 0, 62_345_678, 0 },
			want: of(Kept, "read back: at most 50Mbit; 0bit in the last 5 s, 62.3Mbit in the busiest; 12 packets dropped, 0 marked")},
		"before the first window ends": {held: func(h *Held) { h.Last, h.Most = 0, 0 },
			want: of(Kept, "read back: at most 50Mbit; not measured for 5 s yet; 12 packets dropped, 3 marked")},
		"a link is broken": {have: func(s *State) { drift(s, func(l *LinkState) { l.Attached = false }) },
			want: of(Broken, "link eth0: its programs do not run")},
		"a link is not there": {have: func(s *State) { delete(s.Links, "eth1") }, want: of(Broken, "link eth1: it is not under contract")},
		"another limit is there": {have: func(s *State) { s.Rules.Limits[s.Contracts["held"].ID] = Limit{2e7} },
			want: of(Broken, "egress at most 20Mbit -> at most 50Mbit")},
		"no limit is there":         {have: func(s *State) { s.Rules.Limits = nil }, want: of(Broken, "egress not limited -> at most 50Mbit")},
		"its packets are not found": {have: func(s *State) { s.Rules.Flows = nil }, want: of(Broken, "flows: 1 missing")},
		"another workload's limit":  {have: func(s *State) { s.Rules.Limits[s.Contracts["both"].ID] = Limit{2e7} }, want: of(Kept, text)},
	} {
		t.Run(name, func(t *testing.T) {
			have, held := wanted(t, p, f, IDs{}).State, kept
			if c.have != nil {
				c.have(&have)
			}
			if c.held != nil {
				c.held(&held)
			}
			all := Judge(p, w, Diff(have, w), seen, map[ContractID]Held{w.Contracts["held"].ID: held})
			if len(all) != 4 {
				t.Fatalf("%d judgements: %+v", len(all), all)
			}
			if diff := cmp.Diff(c.want, all[1]); diff != "" {
				t.Error(diff)
			}
			if all[0].Promise != PromisePriority || all[2].Promise != PromisePriority || all[3].Promise != PromiseEgress || all[3].Max != 1e9 {
				t.Errorf("in another order: %+v", all)
			}
		})
	}
	unread := Judge(p, w, nil, nil, nil)[1]
	if unread.Verdict != Unprovable || unread.Evidence != "read back: at most 50Mbit; what passed below it could not be read" {
		t.Errorf("not read: %+v", unread)
	}
}

func TestHeld(t *testing.T) {
	for want, h := range map[string]Held{
		"no packet yet": {},
		"not measured for 5 s yet; 1 packets dropped, 0 marked":                    {Dropped: 1},
		"1Mbit in the last 5 s, 2Mbit in the busiest; no packet dropped or marked": {Bytes: 60, Last: 1e6, Most: 2e6},
		"0bit in the last 5 s, 2Mbit in the busiest; 0 packets dropped, 7 marked":  {Bytes: 540, Marked: 7, Most: 2e6},
	} {
		if got := h.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTermsOfContract(t *testing.T) {
	none := policy.Priority{Default: policy.Unset}
	for want, c := range map[string]policy.Contract{
		"priority 3":                  {Priority: policy.Priority{Default: 3}},
		"at most 10Mbit":              {Priority: none, Egress: policy.Egress{Max: 1e7}},
		"priority 3, at most 1.5Gbit": {Priority: policy.Priority{Default: 3}, Egress: policy.Egress{Max: 15e8}},
		"priority {eth0: 4}":          {Priority: policy.Priority{Default: policy.Unset, PerLink: map[string]policy.Level{"eth0": 4}}},
		"not limited":                 {Priority: none},
	} {
		if got := Terms(c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTerms(t *testing.T) {
	for want, j := range map[string]Judgement{
		"priority 0":     {Promise: PromisePriority},
		"at most 64Kbit": {Promise: PromiseEgress, Priority: policy.Unset, Max: 64_000},
	} {
		if got := j.Terms(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestThreeDigits(t *testing.T) {
	for r, want := range map[policy.Rate]string{
		0: "0bit", 7: "7bit", 999: "999bit", 1000: "1Kbit", 1004: "1Kbit", 1005: "1.01Kbit", 12_345: "12.3Kbit",
		999_499: "999Kbit", 999_500: "1Mbit", 49_834_567: "49.8Mbit", 100_000_000_000: "100Gbit", 1_234_567_890_123: "1.23Tbit",
	} {
		if got := threeDigits(r).String(); got != want {
			t.Errorf("%d: got %s, want %s", r, got, want)
		}
	}
}
