package plan

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/policy"
)

// with is a kernel that has these qdiscs.
func with(qdiscs ...string) Features {
	f := Features{Qdiscs: map[string]bool{}}
	for _, q := range qdiscs {
		f.Qdiscs[q] = true
	}
	return f
}

func TestChoose(t *testing.T) {
	const g = policy.Rate(1e9)
	everything := kernel()
	for name, c := range map[string]struct {
		link     policy.Link
		facts    LinkFacts
		features Features

		scheduler policy.Scheduler
		rate      policy.Rate
		classes   int
		offload   bool
		idle      bool
		why, lack string // substrings; "" for nothing lacking
	}{
		"hardware": {policy.Link{}, LinkFacts{Speed: g, TXQueues: 8, MQPrioHW: true}, everything,
			policy.MQPrio, 0, 8, true, false, "the best there is", ""},
		"hardware, odd number of queues": {policy.Link{}, LinkFacts{Speed: g, TXQueues: 23, MQPrioHW: true}, everything,
			policy.MQPrio, 0, 16, true, false, "the best there is", ""},
		"hardware, but shaped": {policy.Link{Rate: g / 2}, LinkFacts{Speed: g, TXQueues: 8, MQPrioHW: true}, everything,
			policy.Prio, g / 2, 16, false, false, "mqprio can not hold a rate below the device's own", ""},
		"hardware, rate above its own": {policy.Link{Rate: 2 * g}, LinkFacts{Speed: g, TXQueues: 8, MQPrioHW: true}, everything,
			policy.MQPrio, 0, 8, true, false, "the best there is", ""},
		"no hardware": {policy.Link{}, LinkFacts{Speed: g, TXQueues: 8}, everything,
			policy.Prio, 0, 16, false, false, "mqprio in hardware is tried only where the policy says scheduler: mqprio", ""},
		"one queue": {policy.Link{}, LinkFacts{Speed: g, TXQueues: 1}, everything,
			policy.Prio, 0, 16, false, false, "mqprio needs a device with several TX queues", ""},
		"no speed, no rate": {policy.Link{}, LinkFacts{TXQueues: 1}, everything,
			policy.Prio, 0, 16, false, true, "several TX queues", "where nothing queues, nothing is ordered"},
		"no prio": {policy.Link{}, LinkFacts{Speed: g}, with("ets", "fq_codel"),
			policy.ETS, 0, 16, false, false, "kernel has no mqprio qdisc; kernel has no prio qdisc", ""},
		"prio, shaped, no htb": {policy.Link{Rate: g / 2}, LinkFacts{Speed: g}, with("prio", "fq"),
			"", 0, 0, false, false, "prio needs htb above it to hold a rate, and the kernel has none", ""},
		"htb": {policy.Link{Rate: g / 2}, LinkFacts{Speed: g}, with("htb"),
			policy.HTB, g / 2, 8, false, false, "kernel has no ets qdisc", "two neighbouring priorities share a class"},
		"htb with buckets": {policy.Link{}, LinkFacts{Speed: g}, with("htb"),
			policy.HTB, g, 8, false, false, "", "meet in one of its 8 leaves 1 time in 8"},
		"htb with few buckets": {policy.Link{}, LinkFacts{Speed: 3e6}, with("htb"),
			policy.HTB, 3e6, 8, false, false, "", "meet in one of its 4 leaves 1 time in 4"},
		"htb too slow for buckets": {policy.Link{}, LinkFacts{Speed: 1e6}, with("htb"),
			policy.HTB, 1e6, 8, false, false, "", "flows of a class share it unevenly"},
		"prio without fq_codel": {policy.Link{}, LinkFacts{Speed: g}, with("prio"),
			policy.Prio, 0, 16, false, false, "", "flows of a class share it unevenly (fq_codel would mend that)"},
		"htb at the device's speed": {policy.Link{}, LinkFacts{Speed: g}, with("htb"),
			policy.HTB, g, 8, false, false, "", "tiny floor"},
		"htb never above the device's speed": {policy.Link{Rate: 10 * g}, LinkFacts{Speed: g}, with("htb"),
			policy.HTB, g, 8, false, false, "", "tiny floor"},
		"htb without a rate": {policy.Link{}, LinkFacts{}, with("htb"),
			"", 0, 0, false, false, "htb needs a rate, and the device reports no speed", ""},
		"fq": {policy.Link{}, LinkFacts{Speed: g}, with("fq", "fq bands"),
			policy.FQ, 0, 3, false, false, "kernel has no htb qdisc", "weighted, not strict"},
		"fq of old": {policy.Link{}, LinkFacts{Speed: g}, with("fq"),
			policy.FQ, 0, 1, false, false, "kernel has no htb qdisc", "no bands"},
		"fq holds no rate": {policy.Link{Rate: g / 2, Scheduler: policy.FQ}, LinkFacts{Speed: g}, everything,
			"", 0, 0, false, false, "fq can not hold a rate below the device's own", ""},
		"nothing": {policy.Link{}, LinkFacts{Speed: g, TXQueues: 8, MQPrioHW: true}, with(),
			"", 0, 0, false, false, "kernel has no mqprio qdisc; kernel has no prio qdisc; kernel has no ets qdisc; kernel has no htb qdisc; kernel has no fq qdisc", ""},
		"asked for": {policy.Link{Scheduler: policy.ETS}, LinkFacts{Speed: g}, everything,
			policy.ETS, 0, 16, false, false, "the policy asks for it", ""},
		"asked for, not there": {policy.Link{Scheduler: policy.ETS}, LinkFacts{Speed: g}, with("prio"),
			"", 0, 0, false, false, "kernel has no ets qdisc", ""},
		"mqprio asked for without hardware": {policy.Link{Scheduler: policy.MQPrio}, LinkFacts{Speed: g, TXQueues: 4}, everything,
			policy.MQPrio, 0, 4, false, false, "the policy asks for it", "nothing orders the queues"},
		"none": {policy.Link{Scheduler: policy.None}, LinkFacts{Root: Qdisc{Kind: "cake"}}, with(),
			policy.None, 0, 0, false, false, "leaves the device's own qdisc alone", "what the cake qdisc makes"},
		"none with a rate": {policy.Link{Scheduler: policy.None, Rate: g}, LinkFacts{}, with(),
			policy.None, 0, 0, false, false, "", "nothing holds the link to its rate"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.link.Scheduler == "" {
				c.link.Scheduler = policy.Auto
			}
			r, why := Choose(c.link, Demand{}, c.facts, c.features)
			if r.Scheduler != c.scheduler || r.Rate != c.rate || r.Classes != c.classes || r.Offload != c.offload || r.Idle != c.idle {
				t.Errorf("rung %+v", r)
			}
			if (c.scheduler == "") != (why != "") {
				t.Errorf("rung %+v with reason %q", r, why)
			}
			if !strings.Contains(why+r.Why, c.why) {
				t.Errorf("reasons %q and %q, want %q", why, r.Why, c.why)
			}
			if lacks := strings.Join(r.Lacks, "; "); !strings.Contains(lacks, c.lack) || c.lack == "" && lacks != "" {
				t.Errorf("lacks %q, want %q", lacks, c.lack)
			}
		})
	}
}

// TestChooseBuildsWhatCanBeBuilt asks for any link on any host: what comes out
// can be built, and keeps the order of the priorities.
func TestChooseBuildsWhatCanBeBuilt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rates := rapid.SampledFrom([]policy.Rate{0, 8000, 1e6, 1e9, 4e10})
		l := policy.Link{Rate: rates.Draw(t, "rate"), Scheduler: rapid.SampledFrom([]policy.Scheduler{
			policy.Auto, policy.MQPrio, policy.Prio, policy.ETS, policy.HTB, policy.FQ, policy.None,
		}).Draw(t, "scheduler")}
		f := LinkFacts{Speed: rates.Draw(t, "speed"), TXQueues: rapid.IntRange(1, 70).Draw(t, "queues"), MQPrioHW: rapid.Bool().Draw(t, "hardware")}
		features := with(rapid.SliceOfDistinct(rapid.SampledFrom([]string{
			"mqprio", "prio", "ets", "htb", "fq", "fq bands", "fq_codel",
		}), rapid.ID[string]).Draw(t, "qdiscs")...)
		r, why := Choose(l, Demand{}, f, features)
		if why != "" {
			return
		}
		if err := r.Queue.Check(); err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		if !r.ordered() && len(r.Lacks) == 0 {
			t.Fatalf("%+v keeps no strict order and does not say why", r)
		}
		if l.Scheduler != policy.Auto && r.Scheduler != l.Scheduler {
			t.Fatalf("got %s, want %s", r.Scheduler, l.Scheduler)
		}
		if f.Speed != 0 && r.Rate > f.Speed {
			t.Fatalf("shaped to %s, the device makes %s", r.Rate, f.Speed)
		}
		for level := policy.Level(1); level < policy.Levels; level++ {
			if r.ClassOf(r.Written(level)) < r.ClassOf(r.Written(level-1)) {
				t.Fatalf("priority %d goes before %d: %v", level-1, level, r.Map)
			}
		}
	})
}
