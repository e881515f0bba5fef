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
	kept := Held{Passed: 7e6, Dropped: 12, Marked: 3, Last: 49_834_567, Most: 50_149_999}
	const text = "read back: at most 50Mbit; 49.8Mbit in the last 5 s, 50.1Mbit in the busiest; 12 packets dropped, 3 marked"
	of := func(verdict Verdict, evidence string) Judgement {
		return Judgement{"held", EveryLink, "", PromiseEgress, policy.Unset, 5e7, 0, 0, verdict, evidence, Traffic{4988, 7e6}, nil, ""}
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
		"what a bucket of streams had collected": {held: func(h *Held) { h.Last, h.Most, h.Streams = 53_304_857, 53_304_857, true },
			want: of(Kept, "read back: at most 50Mbit; 53.3Mbit in the last 5 s, 53.3Mbit in the busiest; 12 packets dropped, 3 marked")},
		"more than that": {held: func(h *Held) { h.Last, h.Most, h.Streams = 53_304_858, 53_304_858, true },
			want: of(Broken, "read back: at most 50Mbit; 53.3Mbit in the last 5 s, 53.3Mbit in the busiest; 12 packets dropped, 3 marked")},
		"more once, and not now": {held: func(h *Held) { h.Last, h.Most, h.Marked = 0, 62_345_678, 0 },
			want: of(Kept, "read back: at most 50Mbit; 0bit in the last 5 s, 62.3Mbit in the busiest; 12 packets dropped, 0 marked")},
		"before the first window ends": {held: func(h *Held) { h.Last, h.Most = 0, 0 },
			want: of(Kept, "read back: at most 50Mbit; not measured for 5 s yet; 12 packets dropped, 3 marked")},
		"a link is broken": {have: func(s *State) { drift(s, func(l *LinkState) { l.Attached = false }) },
			want: of(Broken, "link eth0: its programs do not run")},
		"a link is not there": {have: func(s *State) { delete(s.Links, "eth1") }, want: of(Broken, "link eth1: it is not under contract")},
		"another limit is there": {have: func(s *State) { s.Rules.Limits[s.Contracts["held"].ID] = Limit{Max: 2e7} },
			want: of(Broken, "egress at most 20Mbit -> at most 50Mbit")},
		"no limit is there":         {have: func(s *State) { s.Rules.Limits = nil }, want: of(Broken, "egress not limited -> at most 50Mbit")},
		"its packets are not found": {have: func(s *State) { s.Rules.Flows = nil }, want: of(Broken, "flows: 1 missing")},
		"another workload's limit":  {have: func(s *State) { s.Rules.Limits[s.Contracts["both"].ID] = Limit{Max: 2e7} }, want: of(Kept, text)},
	} {
		t.Run(name, func(t *testing.T) {
			have, held := wanted(t, p, f, IDs{}).State, kept
			if c.have != nil {
				c.have(&have)
			}
			if c.held != nil {
				c.held(&held)
			}
			all := Judge(p, w, Diff(have, w), Measured{Traffic: seen, Held: map[Owner]Held{{Contract: w.Contracts["held"].ID}: held}})
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
	unread := Judge(p, w, nil, Measured{})[1]
	if unread.Verdict != Unprovable || unread.Evidence != "read back: at most 50Mbit; what passed below it could not be read" {
		t.Errorf("not read: %+v", unread)
	}
}

// What a window may have: 2 % more, a packet of 64 KiB, and what the buckets collected.
func TestWindowOfLimit(t *testing.T) {
	for _, c := range []struct {
		limit   Limit
		streams bool
		want    uint64 // bits, or packets, a second
	}{
		{Limit{Max: 50e6}, false, 51_104_857},
		{Limit{Max: 50e6}, true, 53_304_857},
		{Limit{Max: 50e6, Burst: 1 << 20}, false, 52_782_578},
		{Limit{Max: 50e6, Burst: 1 << 20}, true, 52_782_578},
		{Limit{Max: 64e3, Burst: policy.MaxBurst}, true, 1_718_157_055},
	} {
		if got := c.limit.bound(c.streams); got != c.want {
			t.Errorf("%v, streams %t: %d, want %d", c.limit, c.streams, got, c.want)
		}
	}
}

// Each limit is judged by itself, by what was held below it.
func TestJudgeEveryLimit(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {egress: {max: 900Mbit}}, eth1: {ingress: {max: 10Gbit}}}
workloads:
  both: {match: [{port: 80}], egress: {max: 50Mbit, links: {eth1: {max: 10Mbit}}}}
  here: {match: [{port: 443}], egress: {links: {eth0: {max: 1Mbit}}}}
`)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	both, here := w.Contracts["both"].ID, w.Contracts["here"].ID
	eth0, eth1 := w.Links["eth0"].Index, w.Links["eth1"].Index
	seen := map[string]map[ContractID]Traffic{
		"eth0": {Unclaimed: {100, 1e5}, both: {40, 4e4}, here: {20, 2e4}}, "eth1": {Unclaimed: {7, 700}, both: {10, 1e4}},
	}
	held := map[Owner]Held{
		{Contract: both}:                   {Passed: 5e4, Dropped: 5, Last: 4e7, Most: 5e7},
		{Contract: both, Link: eth1}:       {Passed: 1e4, Dropped: 1, Last: 1e7, Most: 1e7},
		{Contract: here, Link: eth0}:       {Passed: 2e4, Last: 5e6, Most: 5e6},
		{Contract: OwnEgress, Link: eth0}:  {Passed: 1e6, Dropped: 60, Last: 9e8, Most: 9e8},
		{Contract: OwnIngress, Link: eth1}: {Passed: 3e6, Marked: 2},
		{Contract: here, Link: eth1}:       {Passed: 1, Last: 9e9, Most: 9e9}, // of no limit
		{Contract: OwnIngress, Link: eth0}: {Passed: 1, Last: 9e9, Most: 9e9},
		{Contract: OwnEgress, Link: 0}:     {Passed: 1, Last: 9e9, Most: 9e9},
	}
	of := func(workload, link, promise string, max policy.Rate, verdict Verdict, evidence string, packets, bytes uint64) Judgement {
		return Judgement{workload, link, "", promise, policy.Unset, max, 0, 0, verdict, evidence, Traffic{packets, bytes}, nil, ""}
	}
	const rest = "no packet dropped or marked"
	want := []Judgement{
		of("both", EveryLink, PromiseEgress, 5e7, Kept,
			"read back: at most 50Mbit; 40Mbit in the last 5 s, 50Mbit in the busiest; 5 packets dropped, 0 marked", 45, 5e4),
		of("both", "eth1", PromiseEgress, 1e7, Kept,
			"read back: at most 10Mbit; 10Mbit in the last 5 s, 10Mbit in the busiest; 1 packets dropped, 0 marked", 9, 1e4),
		of("here", "eth0", PromiseEgress, 1e6, Broken, "read back: at most 1Mbit; 5Mbit in the last 5 s, 5Mbit in the busiest; "+rest, 20, 2e4),
		of("", "eth0", PromiseEgress, 9e8, Kept,
			"read back: at most 900Mbit; 900Mbit in the last 5 s, 900Mbit in the busiest; 60 packets dropped, 0 marked", 100, 1e6),
		of("", "eth1", PromiseIngress, 1e10, Kept, "read back: at most 10Gbit; not measured for 5 s yet; 0 packets dropped, 2 marked", 0, 3e6),
	}
	if diff := cmp.Diff(want, Judge(p, w, nil, Measured{Traffic: seen, Held: held})); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct {
		have func(*State)
		want [5]string // what breaks each; "" leaves it as it is
	}{
		"a link": {func(s *State) { drift(s, func(l *LinkState) { l.Attached = false }) }, [5]string{
			"link eth0: its programs do not run", "", "its programs do not run", "its programs do not run", ""}},
		"a program at ingress": {func(s *State) { driftOf(s, "eth1", func(l *LinkState) { l.Ingress = false }) }, [5]string{
			"link eth1: its program at ingress does not run", "its program at ingress does not run", "", "", "its program at ingress does not run"}},
		"a workload's limit": {func(s *State) { here1(s, both, Limit{}) }, [5]string{
			"eth1 not limited -> at most 10Mbit", "eth1 not limited -> at most 10Mbit"}},
		"a link's limit": {func(s *State) { drift(s, func(l *LinkState) { l.Rules.Egress = Limit{Max: 1e9} }) }, [5]string{
			"link eth0: egress at most 1Gbit -> at most 900Mbit", "", "egress at most 1Gbit -> at most 900Mbit", "egress at most 1Gbit -> at most 900Mbit"}},
	} {
		t.Run(name, func(t *testing.T) {
			have := wanted(t, p, f, IDs{}).State
			c.have(&have)
			for i, j := range Judge(p, w, Diff(have, w), Measured{Traffic: seen, Held: held}) {
				shall := want[i]
				if c.want[i] != "" {
					shall.Verdict, shall.Evidence = Broken, c.want[i]
				}
				if diff := cmp.Diff(shall, j); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	for _, j := range Judge(p, w, nil, Measured{}) {
		if j.Verdict != Unprovable {
			t.Errorf("not read: %+v", j)
		}
	}
}

// What sockets may receive is judged by what was held where they are.
func TestJudgeIngress(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {}}
workloads:
  both: {match: [{port: 80}], egress: {max: 50Mbit}, ingress: {max: 20Mbit}}
  gets: {match: [{port: 443}], ingress: {max: 1Gbit}}
`)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	both, gets := w.Contracts["both"].ID, w.Contracts["gets"].ID
	seen := map[string]map[ContractID]Traffic{"eth0": {both: {40, 4e4}, gets: {9, 900}}}
	held := map[Owner]Held{
		{Contract: both}:                              {Passed: 4e4, Last: 1e6, Most: 1e6},
		{Contract: both, Link: AtSockets}:             {Passed: 7e6, Dropped: 3, Marked: 4, Last: 19e6, Most: 21e6},
		{Contract: gets, Link: AtSockets}:             {Passed: 1, Last: 5e9, Most: 5e9},
		{Contract: gets, Link: w.Links["eth0"].Index}: {Passed: 2},
	}
	of := func(workload, promise string, max policy.Rate, verdict Verdict, evidence string, packets, bytes uint64) Judgement {
		return Judgement{workload, EveryLink, "", promise, policy.Unset, max, 0, 0, verdict, evidence, Traffic{packets, bytes}, nil, ""}
	}
	want := []Judgement{
		of("both", PromiseEgress, 5e7, Kept, "read back: at most 50Mbit; 1Mbit in the last 5 s, 1Mbit in the busiest; no packet dropped or marked", 40, 4e4),
		of("both", PromiseIngress, 2e7, Kept, "read back: at most 20Mbit by edt; 19Mbit in the last 5 s, 21Mbit in the busiest; 3 packets dropped, 4 marked", 0, 7e6),
		of("gets", PromiseIngress, 1e9, Broken, "read back: at most 1Gbit by edt; 5Gbit in the last 5 s, 5Gbit in the busiest; no packet dropped or marked", 0, 1),
	}
	if diff := cmp.Diff(want, Judge(p, w, nil, Measured{Traffic: seen, Held: held})); diff != "" {
		t.Error(diff)
	}
	const detached = "sockets: their program at ingress does not run"
	for name, c := range map[string]struct {
		have func(*State)
		want [3]string // what breaks each; "" leaves it as it is
	}{
		"the program does not run": {func(s *State) { s.Receives = false }, [3]string{"", detached, detached}},
		"nor is one of the limits there": {func(s *State) {
			s.Receives = false
			delete(s.Rules.Arriving, gets)
		}, [3]string{"", detached, detached}},
		"a limit is not there":  {func(s *State) { delete(s.Rules.Arriving, gets) }, [3]string{"", "", "ingress not limited -> at most 1Gbit by edt"}},
		"its rule is not there": {func(s *State) { s.Rules.Flows = nil }, [3]string{"flows: 1 missing", "flows: 1 missing", "flows: 1 missing"}},
		"a link is broken": {func(s *State) { drift(s, func(l *LinkState) { l.Attached = false }) },
			[3]string{"link eth0: its programs do not run", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			have := wanted(t, p, f, IDs{}).State
			c.have(&have)
			for i, j := range Judge(p, w, Diff(have, w), Measured{Traffic: seen, Held: held}) {
				shall := want[i]
				if c.want[i] != "" {
					shall.Verdict, shall.Evidence = Broken, c.want[i]
				}
				if diff := cmp.Diff(shall, j); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	for _, j := range Judge(p, w, nil, Measured{}) {
		if j.Verdict != Unprovable {
			t.Errorf("not read: %+v", j)
		}
	}
}

// driftOf changes what is had of a link.
func driftOf(s *State, link string, fn func(*LinkState)) {
	l := s.Links[link]
	fn(&l)
	s.Links[link] = l
}

// here1 changes what a contract may take of eth1 alone.
func here1(s *State, id ContractID, limit Limit) {
	p := s.Links["eth1"].Rules.promise(id)
	p.Here = limit
	s.Links["eth1"].Rules.Contracts[id] = p
}

// TestJudgePackets judges bandwidth and packets apart, each by its own tally.
func TestJudgePackets(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {scheduler: none, egress: {pps: 70000}}}
workloads:
  held: {match: [{port: 80}], egress: {max: 50Mbit, pps: 20000}, ingress: {pps: 1000}}
`)
	w := wanted(t, p, hostOf(p), IDs{})
	id, eth0 := w.Contracts["held"].ID, w.Links["eth0"].Index
	held := map[Owner]Held{
		{Contract: id}:                                    {Passed: 7e6, Last: 4e7, Most: 5e7},
		{Contract: id, Packets: true}:                     {Passed: 9000, Dropped: 3, Last: 20_425, Most: 20_425},
		{Contract: id, Link: AtSockets, Packets: true}:    {Passed: 10, Last: 1086, Most: 1086, Streams: true},
		{Contract: OwnEgress, Link: eth0, Packets: true}:  {Passed: 9000, Last: 71_426, Most: 71_426},
		{Contract: OwnEgress, Link: eth0}:                 {Passed: 1, Last: 9e9, Most: 9e9}, // of no limit
		{Contract: OwnIngress, Link: eth0, Packets: true}: {Passed: 1, Last: 9e9, Most: 9e9},
		{Contract: id, Link: eth0, Packets: true}:         {Passed: 1, Last: 9e9, Most: 9e9},
	}
	of := func(workload, link, promise string, max policy.Rate, pps policy.PacketRate, verdict Verdict, evidence string, packets, bytes uint64) Judgement {
		return Judgement{workload, link, "", promise, policy.Unset, max, pps, 0, verdict, "read back: " + evidence, Traffic{packets, bytes}, nil, ""}
	}
	seen := map[string]map[ContractID]Traffic{"eth0": {id: {9003, 7e6}}}
	want := []Judgement{
		of("held", EveryLink, PromiseEgress, 5e7, 0, Kept, "at most 50Mbit; 40Mbit in the last 5 s, 50Mbit in the busiest; no packet dropped or marked", 9003, 7e6),
		of("held", EveryLink, PromiseEgress, 0, 20_000, Kept, "at most 20000 packets/s; 20400 packets/s in the last 5 s, 20400 packets/s in the busiest; 3 packets dropped, 0 marked", 9000, 0),
		of("held", EveryLink, PromiseIngress, 0, 1000, Broken, "at most 1000 packets/s; 1090 packets/s in the last 5 s, 1090 packets/s in the busiest; no packet dropped or marked", 10, 0),
		of("", "eth0", PromiseEgress, 0, 70_000, Broken, "at most 70000 packets/s; 71400 packets/s in the last 5 s, 71400 packets/s in the busiest; no packet dropped or marked", 9000, 0),
	}
	if diff := cmp.Diff(want, Judge(p, w, nil, Measured{Traffic: seen, Held: held})); diff != "" {
		t.Error(diff)
	}
	for l, want := range map[Limit]string{
		{PPS: 20_000}:           "at most 20000 packets/s",
		{Max: 5e7, PPS: 20_000}: "at most 50Mbit and 20000 packets/s",
	} {
		if got := l.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHeld(t *testing.T) {
	for want, h := range map[string]Held{
		"no packet yet": {},
		"not measured for 5 s yet; 1 packets dropped, 0 marked":                    {Dropped: 1},
		"1Mbit in the last 5 s, 2Mbit in the busiest; no packet dropped or marked": {Passed: 60, Last: 1e6, Most: 2e6},
		"0bit in the last 5 s, 2Mbit in the busiest; 0 packets dropped, 7 marked":  {Passed: 540, Marked: 7, Most: 2e6},
	} {
		if got := h.words(false); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	packets := Held{Passed: 60, Last: 19_994, Most: 20_011}
	if got := packets.words(true); got != "20000 packets/s in the last 5 s, 20000 packets/s in the busiest; no packet dropped or marked" {
		t.Errorf("of packets: %q", got)
	}
}

func TestTerms(t *testing.T) {
	for want, j := range map[string]Judgement{
		"priority 0":             {Workload: "a", Promise: PromisePriority},
		"at most 64Kbit":         {Workload: "a", Promise: PromiseEgress, Priority: policy.Unset, Max: 64_000},
		"egress at most 1Gbit":   {Promise: PromiseEgress, Priority: policy.Unset, Max: 1e9},
		"ingress at most 10Gbit": {Promise: PromiseIngress, Priority: policy.Unset, Max: 1e10},
		"ingress at most 20Mbit": {Workload: "a", Promise: PromiseIngress, Priority: policy.Unset, Max: 2e7},
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
