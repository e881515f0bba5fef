package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

func TestJudge(t *testing.T) {
	const text = `version: 1
links: {eth0: {rate: 100Mbit, scheduler: htb}, eth1: {scheduler: none}}
workloads:
  ssh: {match: [{port: 22}], priority: {eth0: 15}}
  bulk: {match: [{port: 80}], priority: 2}
  v1: {match: [{user: alice}], priority: 2, via: net_prio}
`
	p := parsed(t, text)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	seen := map[string]map[ContractID]Traffic{"eth0": {w.Contracts["ssh"].ID: {Packets: 3, Bytes: 180}}}
	const none = "read back: priority 2 of its own qdisc; no packet yet; order is what the fq_codel qdisc makes of the priorities"
	const v1 = "read back: net_prio writes it to packets that have no priority yet"
	v1Kept := Judgement{"v1", "eth0", "", PromisePriority, 2, 0, 0, 0, Kept, v1 + ", and htb with 8 classes at 100Mbit orders them", Traffic{}, nil, ""}
	v1Else := []Judgement{
		{"v1", "eth1", "", PromisePriority, 2, 0, 0, 0, Unprovable, v1 + "; order is what the fq_codel qdisc makes of the priorities", Traffic{}, nil, ""},
		{"v1", EveryLink, "", PromisePriority, 2, 0, 0, 0, Unprovable, v1 + "; the order is what the device's own qdisc makes of it", Traffic{}, nil, ""},
	}
	with := func(first []Judgement, more ...Judgement) []Judgement { return slices.Concat(first, more) }
	for name, c := range map[string]struct {
		have func(*State)
		want []Judgement
	}{
		"all as it shall be": {func(*State) {}, with([]Judgement{
			{"ssh", "eth0", "", PromisePriority, 15, 0, 0, 0, Kept, "read back: class 7 of htb with 8 classes at 100Mbit; 3 packets, 180 bytes so far", Traffic{3, 180}, nil, ""},
			{"bulk", "eth0", "", PromisePriority, 2, 0, 0, 0, Kept, "read back: class 1 of htb with 8 classes at 100Mbit; no packet yet", Traffic{}, nil, ""},
			{"bulk", "eth1", "", PromisePriority, 2, 0, 0, 0, Unprovable, none, Traffic{}, nil, ""},
		}, with([]Judgement{v1Kept}, v1Else...)...)},
		"a link is broken": {func(s *State) { drift(s, func(l *LinkState) { l.Drift = "no leaf" }) }, with([]Judgement{
			{"ssh", "eth0", "", PromisePriority, 15, 0, 0, 0, Broken, "no leaf", Traffic{3, 180}, nil, ""},
			{"bulk", "eth0", "", PromisePriority, 2, 0, 0, 0, Broken, "no leaf", Traffic{}, nil, ""},
			{"bulk", "eth1", "", PromisePriority, 2, 0, 0, 0, Unprovable, none, Traffic{}, nil, ""},
			{"v1", "eth0", "", PromisePriority, 2, 0, 0, 0, Broken, "no leaf", Traffic{}, nil, ""},
		}, v1Else...)},
		"a workload is broken": {func(s *State) { s.Rules.Flows = nil; s.Rules.Users[3] = w.Contracts["bulk"].ID }, with([]Judgement{
			{"ssh", "eth0", "", PromisePriority, 15, 0, 0, 0, Broken, "flows: 1 missing", Traffic{3, 180}, nil, ""},
			{"bulk", "eth0", "", PromisePriority, 2, 0, 0, 0, Broken, "flows: 1 missing; users: 1 too many", Traffic{}, nil, ""},
			{"bulk", "eth1", "", PromisePriority, 2, 0, 0, 0, Broken, "flows: 1 missing; users: 1 too many", Traffic{}, nil, ""},
		}, with([]Judgement{v1Kept}, v1Else...)...)},
		"a group has another priority": {func(s *State) { s.Groups["v1"] = Group{Default: 3} }, with([]Judgement{
			{"ssh", "eth0", "", PromisePriority, 15, 0, 0, 0, Kept, "read back: class 7 of htb with 8 classes at 100Mbit; 3 packets, 180 bytes so far", Traffic{3, 180}, nil, ""},
			{"bulk", "eth0", "", PromisePriority, 2, 0, 0, 0, Kept, "read back: class 1 of htb with 8 classes at 100Mbit; no packet yet", Traffic{}, nil, ""},
			{"bulk", "eth1", "", PromisePriority, 2, 0, 0, 0, Unprovable, none, Traffic{}, nil, ""},
			{"v1", "eth0", "", PromisePriority, 2, 0, 0, 0, Broken, "priority 3 -> 2", Traffic{}, nil, ""},
			{"v1", "eth1", "", PromisePriority, 2, 0, 0, 0, Broken, "priority 3 -> 2", Traffic{}, nil, ""},
			{"v1", EveryLink, "", PromisePriority, 2, 0, 0, 0, Broken, "priority 3 -> 2", Traffic{}, nil, ""},
		})},
	} {
		t.Run(name, func(t *testing.T) {
			have := wanted(t, p, f, IDs{}).State
			c.have(&have)
			got := Judge(p, w, Diff(have, w), Measured{Traffic: seen})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOrdered(t *testing.T) {
	for name, c := range map[string]struct {
		rung Rung
		want bool
	}{
		"htb": {Rung{Queue: Queue{Scheduler: policy.HTB}}, true}, "prio": {Rung{Queue: Queue{Scheduler: policy.Prio}}, true},
		"prio where nothing queues": {Rung{Queue: Queue{Scheduler: policy.Prio}, Idle: true}, false},
		"mqprio in hardware":        {Rung{Queue: Queue{Scheduler: policy.MQPrio, Offload: true}}, true},
		"mqprio without":            {Rung{Queue: Queue{Scheduler: policy.MQPrio}}, false},
		"fq":                        {Rung{Queue: Queue{Scheduler: policy.FQ}}, false}, "none": {Rung{Queue: Queue{Scheduler: policy.None}}, false},
	} {
		if got := c.rung.ordered(); got != c.want {
			t.Errorf("%s: ordered %v, want %v", name, got, c.want)
		}
	}
}
