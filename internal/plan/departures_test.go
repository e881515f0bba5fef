package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

// limitsByTimes is a policy of which departure times hold some limits.
const limitsByTimes = `version: 1
links: {eth0: {}, eth1: {scheduler: fq}}
workloads:
  here: {match: [{port: 1}], egress: {links: {eth0: {max: 10Mbit, method: edt}}}, priority: 7}
  both: {match: [{port: 2}], egress: {max: 50Mbit, method: edt, links: {eth1: {max: 40Mbit}}}}
  paced: {match: [{port: 3}], egress: {max: 10Mbit}}
`

// TestLimitsByTimes: what departure times hold is charged to no budget, and every link that
// it is of keeps them.
func TestLimitsByTimes(t *testing.T) {
	p := parsed(t, limitsByTimes)
	w := wanted(t, p, hostOf(p), IDs{})
	for link, text := range map[string]string{
		"eth0": "prio with 16 classes over fq, which keeps times of departure",
		"eth1": "fq with 3 classes, which keeps times of departure",
	} {
		if q := w.Links[link].Queue; q.Leaf != LeafFQ || q.Check() != nil || q.String() != text {
			t.Errorf("%s: %s: %+v", link, q, q)
		}
	}
	of := func(name, link string) Promise { return w.Links[link].Rules.Contracts[w.Contracts[name].ID] }
	if p := of("here", "eth0"); p.Here != (Limit{Max: 10_000_000, Departs: true}) || p.Limited {
		t.Errorf("here: %+v", p)
	}
	if p := of("both", "eth1"); p.Here != (Limit{Max: 40_000_000}) || !p.Limited {
		t.Errorf("both: %+v", p)
	}
	if l := w.Rules.Limits[w.Contracts["both"].ID]; l != (Limit{Max: 50_000_000, Departs: true}) {
		t.Errorf("both: %+v", l)
	}
	if together, here := w.CountLimits(); together != 1 || here != 1 {
		t.Errorf("%d and %d budgets", together, here)
	}
	if d := Diff(w.State, w); len(d) != 0 {
		t.Errorf("to itself: %v", d)
	}
	var got []string
	for _, d := range Diff(State{}, w) {
		got = append(got, d.String())
	}
	want := `+ link eth0: prio with 16 classes over fq, which keeps times of departure, in place of fq_codel
+ link eth1: fq with 3 classes, which keeps times of departure, in place of fq_codel
+ workload both: egress at most 50Mbit by edt, eth1 at most 40Mbit (limit of all links together by edt: the policy asks for it; eth1 by pace: the best there is): port: 2
+ workload here: eth0 priority 7, eth1 priority 7, eth0 at most 10Mbit by edt (limit of eth0 by edt: the policy asks for it): port: 1
+ workload paced: egress at most 10Mbit: port: 3`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	for _, j := range Judge(p, w, nil, Measured{Held: map[Owner]Held{{Contract: w.Contracts["here"].ID, Link: w.Links["eth0"].Index}: {Last: 11e6}}}) {
		if j.Workload == "here" && j.Promise == PromiseEgress && (j.Verdict != Broken || !strings.HasPrefix(j.Evidence, "read back: at most 10Mbit by edt; ")) {
			t.Errorf("%+v", j)
		}
	}
}

// TestTimesBesideClasses: htb and departure times exclude each other on a link, which is told
// once, and of who asked for the times.
func TestTimesBesideClasses(t *testing.T) {
	for other, link := range map[string]string{
		"egress: {links: {eth0: {min: 10Mbit}}}":                  "{}",
		"egress: {links: {eth0: {max: 10Mbit, method: htb}}}":     "{}",
		"egress: {links: {eth0: {max: 5Mbit}}}, priority: 3, #":   "{rate: 100Mbit}",
		"egress: {links: {eth0: {max: 50Mbit}}}, priority: 13, #": "{rate: 10Mbit, adopt: true}",
	} {
		other, _, _ = strings.Cut(other, ", #")
		p := parsed(t, `version: 1
links: {eth0: `+link+`, eth1: {}}
workloads:
  other: {match: [{port: 1}], `+strings.Replace(other, "50Mbit", "5Mbit", 1)+`}
  timed: {match: [{port: 2}], egress: {max: 10Mbit, method: edt}}
`)
		errs := Check(p, hostOf(p))
		if len(errs) != 1 || !strings.HasPrefix(errs[0].Message, `workload "timed": method edt can not hold its limit of all links together: htb `) {
			t.Errorf("%s: %v", other, errs)
		}
	}
	p := parsed(t, `version: 1
links: {eth0: {}}
workloads:
  share: {match: [{port: 1}], egress: {min: 10Mbit}}
  auto: {match: [{port: 2}], egress: {max: 10Mbit}}
`)
	f := hostOf(p)
	f.Features.Atomics = false
	if w := wanted(t, p, f, IDs{}); w.LimitRungs["auto"][EveryLink].Method != policy.MethodHTB {
		t.Errorf("beside a share: %+v", w.LimitRungs)
	}
}

// TestWrittenOverFQ: over fq no packet has a 7 in the last four bits of its priority, and each
// goes to its class.
func TestWrittenOverFQ(t *testing.T) {
	for _, q := range []Queue{
		{Scheduler: policy.Prio, Classes: policy.Levels, Leaf: LeafFQ, Map: SpreadOver(policy.Levels)},
		{Scheduler: policy.ETS, Classes: policy.Levels, Leaf: LeafFQ, Map: SpreadOver(policy.Levels)},
		{Scheduler: policy.FQ, Classes: 1, Leaf: LeafFQ, Map: SpreadOver(1)},
	} {
		for level := range policy.Level(policy.Levels) {
			written := q.Written(level)
			if written&0xf == 7 {
				t.Errorf("%s: %d is %#x", q, level, written)
			}
			if words := q.Describe(written); q.Scheduler != policy.FQ && words != "priority "+level.String() {
				t.Errorf("%s: %d is %s", q, level, words)
			}
			if c := q.ClassOf(written); c != q.Map[level] {
				t.Errorf("%s: %d is %#x, of class %d", q, level, written, c)
			}
		}
	}
	banded := Queue{Scheduler: policy.FQ, Classes: 3, Leaf: LeafFQ, Map: SpreadOver(3)}
	if written := banded.Written(7); written != 7 {
		t.Errorf("with bands 7 is %#x", written)
	}
}

// TestKeepTimes: only what gives no packet before its time is under it.
func TestKeepTimes(t *testing.T) {
	link, facts := policy.Link{Name: "eth0", Scheduler: policy.Auto}, LinkFacts{Speed: 1e9, TXQueues: 1}
	f := kernel()
	delete(f.Qdiscs, "fq_codel")
	rung, why := Choose(link, Demand{Times: true}, facts, f)
	if why != "" || rung.Leaf != LeafFQ || len(rung.Lacks) != 0 {
		t.Errorf("%+v, %s", rung, why)
	}
	for scheduler, want := range map[policy.Scheduler]string{
		policy.HTB: "htb keeps no packet until its time of departure", policy.MQPrio: "mqprio keeps no packet until its time of departure",
		policy.Prio: "prio is below htb here, which keeps no packet until its time of departure",
	} {
		link.Scheduler, link.Rate, facts.TXQueues = scheduler, 0, 4
		if scheduler == policy.Prio {
			link.Rate = 1e8
		}
		if _, why := Choose(link, Demand{Times: true}, facts, f); why != want {
			t.Errorf("%s: %s", scheduler, why)
		}
	}
	before := Queue{Scheduler: policy.Prio, Classes: policy.Levels, Leaf: LeafFQ, Map: SpreadOver(policy.Levels)}
	after := before
	after.Leaf = LeafBFIFO
	if wide := after.Widened(before); !wide.Equal(before) {
		t.Errorf("while programs still give times: %+v", wide)
	}
	if slices.Contains([]Leaf{LeafFQ}, after.Widened(after).Leaf) {
		t.Error("nobody gave times before")
	}
}
