package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/policy"
)

func parsed(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wanted(t interface{ Fatal(...any) }, p *policy.Policy, f Facts, ids IDs) *Want {
	w, errs := Wanted(p, f, ids, nil)
	if len(errs) > 0 {
		t.Fatal(policy.Errors(errs))
	}
	return w
}

func lines(d []Difference) string {
	var b strings.Builder
	for _, x := range d {
		b.WriteString(x.String() + "\n")
	}
	return b.String()
}

const before = `version: 1
links:
  eth0: {rate: 100Mbit, scheduler: htb}
  eth1: {}
workloads:
  ssh:
    match: [{port: 22, protocol: tcp}]
    priority: 15
  batch:
    match: [{user: bob}, {cidr: 10.0.0.0/8}, {cgroup: /a/*}]
    priority: {eth1: 2, default: 4}
  music:
    match: [{user: alice}]
    priority: 3
    via: net_prio
`

// limited20 is before, with a limit of ssh's.
var limited20 = strings.Replace(before, "    priority: 15\n", "    priority: 15\n    egress: {max: 20Mbit}\n", 1)

// limitedHere is before, with limits of ssh's on single links.
var limitedHere = strings.Replace(before, "    priority: 15\n", "    priority: 15\n    egress: {links: {eth0: {max: 20Mbit}, eth1: {max: 10Mbit}}}\n", 1)

// limitedSockets is before, with a limit of what the sockets of a workload receive.
var limitedSockets = strings.Replace(before, "    priority: 15\n", "    priority: 15\n    ingress: {max: 20Mbit, method: pace}\n", 1)

// boundedMemory is before, with a bound of what the sockets of a workload hold.
var boundedMemory = strings.Replace(before, "default: 4}\n", "default: 4}\n    tcp-memory: {max: 8MiB, when-full: refuse}\n", 1)

// limitedLinks is before, with limits of the links' own.
var limitedLinks = strings.Replace(before, "  eth1: {}\n", "  eth1: {egress: {max: 900Mbit}, ingress: {max: 10Gbit}}\n", 1)

func TestDiff(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string // to is from with "OLD=>NEW" applied, or a policy
		have     func(*State)
		want     string
	}{
		"from nothing": {"", before, nil, `
+ link eth0: htb with 8 classes at 100Mbit, in place of fq_codel
+ link eth1: prio with 16 classes, in place of fq_codel
+ workload batch: eth0 class 2, eth1 priority 2: user: bob or cidr: 10.0.0.0/8 or cgroup: /a/*
+ workload ssh: eth0 class 7, eth1 priority 15: port: 22, protocol: tcp
+ net_prio group music: priority 3
`},
		"to nothing": {before, "version: 1\nlinks: {}\nworkloads: {}\n", nil, `
- link eth0: htb with 8 classes at 100Mbit
- link eth1: prio with 16 classes
- workload batch: its packets are nobody's again
- workload ssh: its packets are nobody's again
- net_prio group music: its processes go back where they were
`},
		"a priority":       {before, "priority: 15=>priority: 12", nil, "~ workload ssh: eth0 class 7 -> class 6, eth1 priority 15 -> priority 12\n"},
		"within one class": {before, "default: 4=>default: 5", nil, ""},
		"a user":           {before, "user: bob=>user: carol", nil, "~ workload batch: users: 1 missing, 1 too many\n"},
		"a prefix length":  {before, "10.0.0.0/8=>10.0.0.0/16", nil, "~ workload batch: flows: 1 missing, 1 too many\n"},
		"a pattern":        {before, "/a/*=>/a/b*", nil, "~ workload batch: cgroups: 1 too many; patterns: 1 missing, 1 too many\n"},
		"a scheduler alone": {before, "eth1: {}=>eth1: {scheduler: ets}", nil,
			"~ link eth1: prio with 16 classes -> ets with 16 classes\n"},
		"a scheduler of another kind": {before, "eth1: {}=>eth1: {scheduler: htb}", nil,
			"~ link eth1: prio with 16 classes -> htb with 8 classes at 1Gbit\n"},
		"a rate":     {before, "100Mbit=>200Mbit", nil, "~ link eth0: htb with 8 classes at 100Mbit -> htb with 8 classes at 200Mbit\n"},
		"a default":  {before + "default: {priority: 9}\n", "priority: 9=>priority: 1", nil, "~ default: eth0 class 4 -> class 0, eth1 priority 9 -> priority 1\n"},
		"net_prio":   {before, "priority: 3=>priority: 6", nil, "~ net_prio group music: priority 3 -> 6\n"},
		"a workload": {before, "  batch:=>  jobs:", nil, "- workload batch: its packets are nobody's again\n+ workload jobs: eth0 class 2, eth1 priority 2: user: bob or cidr: 10.0.0.0/8 or cgroup: /a/*\n"},

		"a limit":       {before, "    priority: 15=>    priority: 15\n    egress: {max: 20Mbit}", nil, "~ workload ssh: egress not limited -> at most 20Mbit\n"},
		"another limit": {limited20, "20Mbit=>50Mbit", nil, "~ workload ssh: egress at most 20Mbit -> at most 50Mbit\n"},
		"no limit":      {limited20, "    egress: {max: 20Mbit}\n=>", nil, "~ workload ssh: egress at most 20Mbit -> not limited\n"},
		"another limit and another priority": {limited20, "priority: 15\n    egress: {max: 20Mbit}=>priority: 12\n    egress: {max: 1Gbit}", nil,
			"~ workload ssh: eth0 class 7 -> class 6, eth1 priority 15 -> priority 12, egress at most 20Mbit -> at most 1Gbit\n"},
		"a limit alone": {"", "version: 1\nlinks: {eth0: {scheduler: none}}\nworkloads: {w: {match: [{port: 1}], egress: {max: 1Gbit}}}\n", nil,
			"+ link eth0: its own qdisc, in place of fq_codel\n+ workload w: egress at most 1Gbit: port: 1\n"},
		"a limit beside a priority": {"", limited20, nil, `
+ link eth0: htb with 8 classes at 100Mbit, in place of fq_codel
+ link eth1: prio with 16 classes, in place of fq_codel
+ workload batch: eth0 class 2, eth1 priority 2: user: bob or cidr: 10.0.0.0/8 or cgroup: /a/*
+ workload ssh: eth0 class 7, eth1 priority 15, egress at most 20Mbit: port: 22, protocol: tcp
+ net_prio group music: priority 3
`},
		"a limit of packets beside it": {limited20, "egress: {max: 20Mbit}=>egress: {max: 20Mbit, pps: 300}", nil,
			"~ workload ssh: egress at most 20Mbit -> at most 20Mbit and 300 packets/s\n"},
		"a limit that is gone": {limited20, limited20, func(s *State) { s.Rules.Limits = nil }, "~ workload ssh: egress not limited -> at most 20Mbit\n"},
		"a limit too many": {before, before, func(s *State) {
			s.Rules.Limits = map[ContractID]Limit{s.Contracts["batch"].ID: {Max: 1e9}}
		}, "~ workload batch: egress at most 1Gbit -> not limited\n"},
		"a limit of nobody's": {before, before, func(s *State) { s.Rules.Limits = map[ContractID]Limit{700: {Max: 1e9}} },
			"~ contract 700: is nobody's: egress at most 1Gbit\n"},
		"no limits at all, read back as none": {before, before, func(s *State) { s.Rules.Limits = nil }, ""},
		"a limit that a link does not charge": {limited20, limited20, func(s *State) {
			drift(s, func(l *LinkState) {
				p := l.Rules.Contracts[s.Contracts["ssh"].ID]
				p.Limited = false
				l.Rules.Contracts[s.Contracts["ssh"].ID] = p
			})
		}, "~ workload ssh: eth0 not limited -> limited\n"},

		"a limit on one link": {before, "    priority: 15=>    priority: 15\n    egress: {links: {eth1: {max: 10Mbit}}}", nil,
			"~ workload ssh: eth1 not limited -> at most 10Mbit\n"},
		"another limit on one link": {limitedHere, "max: 10Mbit=>max: 64Kbit", nil, "~ workload ssh: eth1 at most 10Mbit -> at most 64Kbit\n"},
		"no limit on one link":      {limitedHere, "eth0: {max: 20Mbit}, =>", nil, "~ workload ssh: eth0 at most 20Mbit -> not limited\n"},
		"limits of all kinds": {limitedHere, "    priority: 15\n    egress: {=>    priority: 12\n    egress: {max: 25Mbit, ", nil,
			"~ workload ssh: eth0 class 7 -> class 6, eth1 priority 15 -> priority 12, egress not limited -> at most 25Mbit\n"},
		"a limit on one link, and another scheduler": {limitedHere, "eth1: {}=>eth1: {scheduler: ets}", func(s *State) {
			here1(s, s.Contracts["ssh"].ID, Limit{})
		}, `
~ link eth1: prio with 16 classes -> ets with 16 classes
~ workload ssh: eth1 not limited -> at most 10Mbit
`},
		"a limit on one link alone": {"", "version: 1\nlinks: {eth0: {scheduler: none}}\nworkloads: {w: {match: [{port: 1}], egress: {links: {eth0: {max: 1Gbit}}}}}\n", nil,
			"+ link eth0: its own qdisc, in place of fq_codel\n+ workload w: eth0 at most 1Gbit: port: 1\n"},
		"a limit on one link that is gone": {limitedHere, limitedHere, func(s *State) { here1(s, s.Contracts["ssh"].ID, Limit{}) },
			"~ workload ssh: eth1 not limited -> at most 10Mbit\n"},
		"limits of nobody's": {before, before, func(s *State) {
			s.Rules.Limits = map[ContractID]Limit{700: {Max: 1e9}}
			here1(s, 700, Limit{Max: 1e6})
			here1(s, 701, Limit{Max: 2e6})
		}, "~ contract 700: is nobody's: egress at most 1Gbit, eth1 at most 1Mbit\n~ contract 701: is nobody's: eth1 at most 2Mbit\n"},
		"a workload with limits of all kinds": {"", limitedHere, nil, `
+ link eth0: htb with 8 classes at 100Mbit, in place of fq_codel
+ link eth1: prio with 16 classes, in place of fq_codel
+ workload batch: eth0 class 2, eth1 priority 2: user: bob or cidr: 10.0.0.0/8 or cgroup: /a/*
+ workload ssh: eth0 class 7, eth1 priority 15, eth0 at most 20Mbit, eth1 at most 10Mbit: port: 22, protocol: tcp
+ net_prio group music: priority 3
`},

		"limits of a link": {before, "eth1: {}=>eth1: {egress: {max: 900Mbit}, ingress: {max: 10Gbit}}", nil,
			"~ link eth1: egress not limited -> at most 900Mbit; ingress not limited -> at most 10Gbit\n"},
		"another limit of a link":  {limitedLinks, "10Gbit=>5Gbit", nil, "~ link eth1: ingress at most 10Gbit -> at most 5Gbit\n"},
		"no limit of a link":       {limitedLinks, ", ingress: {max: 10Gbit}=>", nil, "~ link eth1: ingress at most 10Gbit -> not limited\n"},
		"no limit of a link's own": {limitedLinks, "egress: {max: 900Mbit}, =>", nil, "~ link eth1: egress at most 900Mbit -> not limited\n"},
		"a link with limits": {"", "version: 1\nlinks: {eth0: {scheduler: none, ingress: {max: 1Gbit}, egress: {max: 1Mbit}}}\n", nil,
			"+ link eth0: its own qdisc, in place of fq_codel; egress at most 1Mbit; ingress at most 1Gbit\n"},
		"a program at ingress detached": {limitedLinks, limitedLinks, func(s *State) { driftOf(s, "eth1", func(l *LinkState) { l.Ingress = false }) },
			"~ link eth1: its program at ingress does not run\n"},
		"both programs detached": {limitedLinks, limitedLinks, func(s *State) {
			driftOf(s, "eth1", func(l *LinkState) { l.Ingress, l.Attached = false, false })
		}, "~ link eth1: its programs do not run\n"},
		"a program at ingress too many": {before, before, func(s *State) { drift(s, func(l *LinkState) { l.Ingress = true }) },
			"~ link eth0: a program of its runs at ingress, where nothing is limited\n"},
		"a limit at ingress that is gone with its program": {limitedLinks, limitedLinks, func(s *State) {
			driftOf(s, "eth1", func(l *LinkState) { l.Ingress, l.Rules.Ingress = false, Limit{} })
		}, "~ link eth1: ingress not limited -> at most 10Gbit\n"},

		"a limit of sockets": {before, "    priority: 15=>    priority: 15\n    ingress: {max: 20Mbit, method: pace}", nil, "~ workload ssh: ingress not limited -> at most 20Mbit\n"},
		"a limit of sockets by the links that keep answers": {before, "    priority: 15=>    priority: 15\n    ingress: {max: 20Mbit}", nil, `
~ link eth1: prio with 16 classes -> prio with 16 classes over fq, which keeps times of departure
~ workload ssh: ingress not limited -> at most 20Mbit by edt
`},
		"another limit of sockets": {limitedSockets, "20Mbit=>50Mbit", nil, "~ workload ssh: ingress at most 20Mbit -> at most 50Mbit\n"},
		"no limit of sockets":      {limitedSockets, "    ingress: {max: 20Mbit, method: pace}\n=>", nil, "~ workload ssh: ingress at most 20Mbit -> not limited\n"},
		"limits both ways": {limitedSockets, "priority: 15\n    ingress: {max: 20Mbit, method: pace}=>priority: 12\n    ingress: {max: 1Gbit, method: pace}\n    egress: {max: 2Gbit}", nil,
			"~ workload ssh: eth0 class 7 -> class 6, eth1 priority 15 -> priority 12, egress not limited -> at most 2Gbit, ingress at most 20Mbit -> at most 1Gbit\n"},
		"a limit of sockets alone": {"", "version: 1\nworkloads: {w: {match: [{port: 1}], ingress: {max: 1Gbit}}}\n", nil,
			"+ workload w: ingress at most 1Gbit (limit of what sockets receive by pace: the best here: no link is declared, on which what is answered could wait): port: 1\n"},
		"a limit of sockets beside others": {"", "version: 1\nlinks: {eth0: {scheduler: prio}}\n" +
			"workloads: {w: {match: [{port: 1}], priority: 2, ingress: {max: 1Gbit}, egress: {max: 1Mbit, links: {eth0: {max: 64Kbit}}}}}\n", nil,
			"+ link eth0: prio with 16 classes over fq, which keeps times of departure, in place of fq_codel\n" +
				"+ workload w: eth0 priority 2, egress at most 1Mbit, eth0 at most 64Kbit, ingress at most 1Gbit by edt: port: 1\n"},
		"the last limit of sockets": {"version: 1\nworkloads: {w: {match: [{port: 1}], ingress: {max: 1Gbit}}}\n", "version: 1\n", nil,
			"- workload w: its packets are nobody's again\n"},
		"a limit of sockets that is gone": {limitedSockets, limitedSockets, func(s *State) { s.Rules.Arriving = nil },
			"~ workload ssh: ingress not limited -> at most 20Mbit\n"},
		"a limit of sockets that is gone with its program": {limitedSockets, limitedSockets, func(s *State) { s.Rules.Arriving, s.Receives = nil, false },
			"~ workload ssh: ingress not limited -> at most 20Mbit\n"},
		"a limit of sockets of nobody's": {limitedSockets, limitedSockets, func(s *State) { s.Rules.Arriving[700] = Limit{Max: 1e9} },
			"~ contract 700: is nobody's: ingress at most 1Gbit\n"},
		"a program of sockets detached": {limitedSockets, limitedSockets, func(s *State) { s.Receives = false },
			"~ sockets: their program at ingress does not run\n"},
		"a program of sockets detached, and another limit": {limitedSockets, "20Mbit=>50Mbit", func(s *State) { s.Receives = false },
			"~ workload ssh: ingress at most 20Mbit -> at most 50Mbit\n~ sockets: their program at ingress does not run\n"},
		"a program of sockets too many": {before, before, func(s *State) { s.Receives = true },
			"~ sockets: a program of theirs runs at ingress, where nothing is limited\n"},
		"a program of sockets left behind": {limitedSockets, "    ingress: {max: 20Mbit, method: pace}\n=>", func(s *State) { s.Rules.Arriving = nil },
			"~ sockets: a program of theirs runs at ingress, where nothing is limited\n"},
		"no limits of sockets, read back as none": {before, before, func(s *State) { s.Rules.Arriving = nil }, ""},

		"a bound of memory": {before, "default: 4}=>default: 4}\n    tcp-memory: {max: 32MiB}", nil,
			"~ workload batch: tcp-memory none -> {soft: 16MiB, max: 32MiB, when-full: squeeze}\n"},
		"another bound of memory": {boundedMemory, "when-full: refuse=>soft: 1MiB", nil,
			"~ workload batch: tcp-memory {soft: 4MiB, max: 8MiB, when-full: refuse} -> {soft: 1MiB, max: 8MiB, when-full: squeeze}\n"},
		"no bound of memory": {boundedMemory, "    tcp-memory: {max: 8MiB, when-full: refuse}\n=>", nil,
			"~ workload batch: tcp-memory {soft: 4MiB, max: 8MiB, when-full: refuse} -> none\n"},
		"a bound of memory alone": {"", "version: 1\nworkloads: {w: {match: [{cgroup: /w}], tcp-memory: {max: 8MiB, when-full: refuse}}}\n", nil,
			"+ workload w: tcp-memory at most 8MiB, soft 4MiB, refuse: cgroup: /w\n"},
		"a bound of memory that is gone with its programs": {boundedMemory, boundedMemory, func(s *State) { s.Rules.Memory, s.Holds = nil, false },
			"~ workload batch: tcp-memory none -> {soft: 4MiB, max: 8MiB, when-full: refuse}\n"},
		"a bound of memory of nobody's": {boundedMemory, boundedMemory, func(s *State) { s.Rules.Memory[700] = policy.TCPMemory{Soft: 1 << 20, Max: 1 << 20} },
			"~ contract 700: is nobody's: tcp-memory at most 1MiB, soft 1MiB\n"},
		"programs of memory detached":       {boundedMemory, boundedMemory, func(s *State) { s.Holds = false }, "~ tcp memory: its programs do not run\n"},
		"programs of memory too many":       {before, before, func(s *State) { s.Holds = true }, "~ tcp memory: programs of its own run, where nothing has a bound\n"},
		"no bounds of memory, read as none": {before, before, func(s *State) { s.Rules.Memory = nil }, ""},

		"a link that is let go": {"version: 1\nlinks:\n  eth0: {}\n  eth1: {}\n", "  eth0: {}\n=>", func(s *State) {
			drift(s, func(l *LinkState) { l.Root = Qdisc{Kind: "fq_codel", Default: true} })
		}, "- link eth0: prio with 16 classes; fq_codel is back\n"},
		"a queue that drifted": {before, before, func(s *State) { drift(s, func(l *LinkState) { l.Drift = "class 3 is gone" }) }, "~ link eth0: class 3 is gone\n"},
		"a queue that is gone": {before, before, func(s *State) { drift(s, func(l *LinkState) { l.Queue = Queue{Scheduler: policy.None} }) },
			"~ link eth0: its own qdisc -> htb with 8 classes at 100Mbit\n"},
		"a queue that is gone, and another priority": {before, "priority: 15=>priority: 12", func(s *State) {
			drift(s, func(l *LinkState) { l.Queue = Queue{Scheduler: policy.None} })
		}, `
~ link eth0: its own qdisc -> htb with 8 classes at 100Mbit
~ workload ssh: eth0 class 7e1f:17 -> class 6, eth1 priority 15 -> priority 12
`},
		"a program detached":     {before, before, func(s *State) { drift(s, func(l *LinkState) { l.Attached = false }) }, "~ link eth0: its programs do not run\n"},
		"another device":         {before, before, func(s *State) { drift(s, func(l *LinkState) { l.Index = 99 }) }, "~ link eth0: another device has this name now, with fq_codel at its root\n"},
		"another kind of device": {before, before, func(s *State) { drift(s, func(l *LinkState) { l.Rules.L2 = 0 }) }, "~ link eth0: its packets start with 14 bytes of link layer, not 0\n"},
		"the leaves alone": {before, before, func(s *State) { drift(s, func(l *LinkState) { l.Queue.Leaf = LeafBFIFO }) },
			"~ link eth0: htb with 8 classes at 100Mbit (leaves \"bfifo\", buckets 1, map [0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7], shares []) -> " +
				"htb with 8 classes at 100Mbit (leaves \"fq_codel\", buckets 1, map [0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7], shares [])\n"},
		"the ladder": {before, before, func(s *State) { drift(s, func(l *LinkState) { l.Rules.Contracts[LadderID+7] = Promise{} }) },
			"~ link eth0: packets that nobody claims have other priorities\n"},
		"the unclassified": {before, before, func(s *State) { drift(s, func(l *LinkState) { l.Rules.Contracts[Unclassified] = Promise{} }) },
			"~ link eth0: packets that nobody claims have other priorities\n"},
		"a promise that was overwritten": {before, before, func(s *State) {
			drift(s, func(l *LinkState) {
				l.Rules.Contracts[s.Contracts["ssh"].ID] = Promise{Priority: Keep, Serial: s.Contracts["ssh"].Serial}
			})
		}, "~ workload ssh: eth0 as it comes -> class 7\n"},
		"a serial": {before, before, func(s *State) {
			drift(s, func(l *LinkState) {
				p := l.Rules.Contracts[s.Contracts["ssh"].ID]
				p.Serial = 77
				l.Rules.Contracts[s.Contracts["ssh"].ID] = p
			})
		}, "~ workload ssh: eth0 serial 77 -> 1\n"},
		"a rule that was deleted": {before, before, func(s *State) { delete(s.Rules.Users, 1000) }, "~ workload batch: users: 1 missing\n"},
		"a rule of nobody's":      {before, before, func(s *State) { s.Rules.Users[5] = 700 }, "~ contract 700: is nobody's: users: 1 too many\n"},
		"shapes in another order": {before, before, func(s *State) {
			r := &s.Rules
			r.Tuples = []Tuple{r.Tuples[1], r.Tuples[0]}
			flows := map[FlowKey]ContractID{}
			for k, id := range r.Flows {
				k.Tuple = 1 - k.Tuple
				flows[k] = id
			}
			r.Flows = flows
		}, "~ flows: in another order\n"},
	} {
		t.Run(name, func(t *testing.T) {
			to := c.to
			if old, now, ok := strings.Cut(c.to, "=>"); ok {
				if to = strings.Replace(c.from, old, now, 1); to == c.from {
					t.Fatalf("%q is not in the policy", old)
				}
			}
			q := parsed(t, to)
			have, facts := State{}, hostOf(q)
			ids := IDs{}
			if c.from != "" {
				p := parsed(t, c.from)
				facts = hostOf(p, q)
				w := wanted(t, p, facts, ids)
				have, ids = w.State, w.IDs
			}
			if c.have != nil {
				c.have(&have)
			}
			got := lines(Diff(have, wanted(t, q, facts, ids)))
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// drift changes what is had of eth0.
func drift(s *State, fn func(*LinkState)) { driftOf(s, "eth0", fn) }

// TestDiffSaysAll walks from policy to policy: there is no difference if, and
// only if, the states are equal.
func TestDiffSaysAll(t *testing.T) {
	// Pairs that may share what they have; no claims meet on the host of both.
	pairs := rapid.Custom(func(t *rapid.T) [2]*policy.Policy {
		a, b := drawPolicy(t), drawPolicy(t)
		if rapid.Bool().Draw(t, "the same links") {
			b.Links = a.Links
		}
		if rapid.Bool().Draw(t, "the same workloads") {
			b.Workloads = a.Workloads
		}
		return [2]*policy.Policy{a, b}
	}).Filter(func(p [2]*policy.Policy) bool {
		f := hostOf(p[0], p[1])
		w, errs := Wanted(p[0], f, IDs{}, nil)
		if len(errs) == 0 {
			_, errs = Wanted(p[1], f, w.IDs, nil)
		}
		return len(errs) == 0
	})
	rapid.Check(t, func(t *rapid.T) {
		pair := pairs.Draw(t, "pair")
		a, b := pair[0], pair[1]
		f := hostOf(a, b)
		wa := wanted(t, a, f, IDs{})
		wb := wanted(t, b, f, wa.IDs)
		if d := Diff(wa.State, wa); len(d) > 0 {
			t.Fatalf("a state differs from itself: %v", d)
		}
		d := Diff(wa.State, wb)
		unequal := cmp.Diff(wa.State, wb.State, cmpopts.IgnoreFields(Rules{}, "Controller1"), cmpopts.EquateEmpty())
		if (len(d) == 0) != (unequal == "") {
			t.Fatalf("%d differences between states that differ so:\n%s\n%s", len(d), unequal, lines(d))
		}
		if again := Diff(wa.State, wb); lines(again) != lines(d) {
			t.Fatalf("another order:\n%s\n%s", lines(d), lines(again))
		}
	})
}

func TestSummary(t *testing.T) {
	if s := Summary(nil); s != "No changes." {
		t.Error(s)
	}
	if s := Summary([]Difference{{Op: Add}, {Op: Add}, {Op: Change}, {Op: Remove}}); s != "Plan: 2 to add, 1 to change, 1 to remove." {
		t.Error(s)
	}
}
