package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

const receivedByTimes = `version: 1
links: {eth0: {}, eth1: {scheduler: fq}}
workloads:
  timed: {match: [{port: 1}], ingress: {max: 10Mbit, method: edt}}
  paced: {match: [{port: 2}], ingress: {max: 20Mbit, method: pace}, egress: {max: 5Mbit}}
`

// TestReceivedByTimes: what is received is charged to a budget on either rung; where what is answered waits, every link
// keeps it until its time, and every contract says whose does.
func TestReceivedByTimes(t *testing.T) {
	p := parsed(t, receivedByTimes)
	w := wanted(t, p, hostOf(p), IDs{})
	timed, paced := w.Contracts["timed"].ID, w.Contracts["paced"].ID
	if got, want := w.Rules.Arriving[timed], (Limit{Max: 10_000_000, Answers: true}); got != want || got.Budgets() != 1 {
		t.Errorf("timed: %+v", got)
	}
	if got, want := w.Rules.Arriving[paced], (Limit{Max: 20_000_000}); got != want {
		t.Errorf("paced: %+v", got)
	}
	for _, link := range []string{"eth0", "eth1"} {
		l := w.Links[link]
		if l.Queue.Leaf != LeafFQ || !l.Rules.Contracts[timed].Answers || l.Rules.Contracts[paced].Answers {
			t.Errorf("%s: %s, %+v", link, l.Queue, l.Rules.Contracts)
		}
	}
	if d := Diff(w.State, w); len(d) != 0 {
		t.Errorf("to itself: %v", d)
	}
	q := parsed(t, strings.Replace(receivedByTimes, "edt", "pace", 1))
	before := wanted(t, q, hostOf(q), w.IDs)
	if before.Links["eth0"].Queue.Leaf == LeafFQ {
		t.Errorf("nothing waits on %s", before.Links["eth0"].Queue)
	}
	told := ""
	for _, d := range Diff(before.State, w) {
		told += d.String() + "\n"
	}
	for _, want := range []string{"~ workload timed: ", "ingress at most 10Mbit -> at most 10Mbit by edt"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not in\n%s", want, told)
		}
	}
	lost := wanted(t, p, hostOf(p), w.IDs)
	promise := lost.Links["eth0"].Rules.Contracts[timed]
	promise.Answers = false
	lost.Links["eth0"].Rules.Contracts[timed] = promise
	if d := Diff(lost.State, w); len(d) != 1 || d[0].String() != "~ workload timed: eth0 not limited -> not limited, answers wait" {
		t.Errorf("with a link that does not know of it: %v", d)
	}
	if got := strings.Join(w.Received.Told("timed"), ""); got != "what sockets receive by edt: the policy asks for it" {
		t.Error(got)
	}
	for _, d := range Diff(State{}, w) {
		if d.Object == "workload timed" && !strings.Contains(d.Detail, "ingress at most 10Mbit by edt (limit of what sockets receive by edt: the policy asks for it)") {
			t.Error(d)
		}
	}
}

// TestReceiveLadder: answers wait where links keep them, with the rung that they have without; else windows and buckets hold
// what is received.
func TestReceiveLadder(t *testing.T) {
	for name, c := range map[string]struct {
		method policy.Method
		link   policy.Link
		change func(*Facts)
		want   string
		refuse string
	}{
		"auto": {want: "by edt: the best there is"},
		"auto beside a rate": {link: policy.Link{Rate: 1e8},
			want: `by htb: the best here: htb holds link "eth0" to 100Mbit, and keeps no packet until its time of departure`},
		"auto beside mqprio": {change: func(f *Facts) { f.Links["eth0"] = LinkFacts{Speed: 1e9, TXQueues: 4, MQPrioHW: true} },
			want: `by pace: the best here: link "eth0": mqprio keeps no packet until its time of departure; link "eth0": its packets have no Ethernet header, with which they could wait elsewhere`},
		"auto without fq": {change: func(f *Facts) { delete(f.Features.Qdiscs, "fq") },
			want: "by htb: the best here: kernel has no fq qdisc, which edt waits in"},
		"auto without fq and htb": {change: func(f *Facts) { delete(f.Features.Qdiscs, "fq"); f.Features.Weighs = false },
			want: "by pace: the best here: kernel has no fq qdisc, which edt waits in; kernel has no htb that counts packets as what they stand for (htb, and size tables)"},
		"auto without prio": {change: func(f *Facts) { delete(f.Features.Qdiscs, "prio"); delete(f.Features.Qdiscs, "ets") },
			want: `by htb: the best here: link "eth0": htb keeps no packet until its time of departure`},
		"pace": {method: policy.MethodPace, want: "by pace: the policy asks for it"},
		"edt":  {method: policy.MethodEDT, want: "by edt: the policy asks for it"},
		"htb":  {method: policy.MethodHTB, want: "by htb: the policy asks for it"},
		"no way back": {method: policy.MethodHTB, change: func(f *Facts) { f.Links["eth0"] = LinkFacts{} },
			refuse: `link "eth0": its packets have no Ethernet header, with which they could wait elsewhere`},
		"no budget": {method: policy.MethodEDT, change: func(f *Facts) { f.Features.Atomics = false }, refuse: "BPF programs of this kernel can not count a limit together (no atomic fetch)"},
		"no fq":     {method: policy.MethodEDT, change: func(f *Facts) { delete(f.Features.Qdiscs, "fq") }, refuse: "kernel has no fq qdisc, which edt waits in"},
		"shaped": {method: policy.MethodEDT, link: policy.Link{Rate: 1e8},
			refuse: `htb holds link "eth0" to 100Mbit, and keeps no packet until its time of departure`},
	} {
		c.link.Name, c.link.Scheduler = "eth0", policy.Auto
		p := parsed(t, receivedByTimes)
		f := hostOf(p)
		if c.change != nil {
			c.change(&f)
		}
		rung, why := ChooseReceive(policy.Limit{Max: 1e6, Method: c.method}, []policy.Link{c.link}, nil, f)
		if why != c.refuse || why == "" && rung.String() != c.want {
			t.Errorf("%s: %s, refused: %s", name, rung, why)
		}
	}
	p := parsed(t, receivedByTimes)
	f := hostOf(p)
	for max, want := range map[policy.Limit]string{
		{Max: 1e6, Burst: 1 << 20}: "by pace: the best here: edt lets no burst of 1MiB through; htb lets no burst of 1MiB through",
		{PPS: 100}:                 "by pace: the best here: edt counts no packets; htb counts no packets",
	} {
		if rung, why := ChooseReceive(max, p.Links, nil, f); why != "" || rung.String() != want {
			t.Errorf("%+v: %s, refused: %s", max, rung, why)
		}
	}
	if rung, why := ChooseReceive(policy.Limit{Max: 1e6}, nil, nil, f); why != "" || rung.String() != "by pace: the best here: no link is declared, on which what is answered could wait" {
		t.Errorf("without links: %s, refused: %s", rung, why)
	}
	delete(f.Features.Qdiscs, "fq")
	p.Links = p.Links[:1]
	if errs := Check(p, f); len(errs) != 1 || errs[0].Message != `workload "timed": method edt can not hold its ingress: kernel has no fq qdisc, which edt waits in` {
		t.Errorf("%v", errs)
	}
}

const receivedByClass = `version: 1
links: {eth0: {rate: 50Mbit}, eth1: {scheduler: none}}
workloads:
  first: {match: [{port: 1}], ingress: {max: 10Mbit}}
  other: {match: [{port: 2}], ingress: {max: 20Mbit}}
  paced: {match: [{port: 3}], ingress: {max: 30Mbit, method: pace}}
`

// TestReceivedByClass: where no link keeps answers, they wait in a queue of ours, in a class for each limit.
func TestReceivedByClass(t *testing.T) {
	p := parsed(t, receivedByClass)
	f := hostOf(p)
	f.Links["eth1"] = LinkFacts{Index: 3}
	w := wanted(t, p, f, IDs{})
	first, other, paced := w.Contracts["first"].ID, w.Contracts["other"].ID, w.Contracts["paced"].ID
	shares := []Share{{Max: 10e6}, {Max: 20e6}}
	if got := w.Waiting.Queue; got.Check() != nil || !got.Weighs || cmp.Diff(shares, got.Shares) != "" || len(w.Waiting.Drift) > 0 {
		t.Errorf("%+v, %v", got, got.Check())
	}
	for id, want := range map[ContractID]Limit{
		first: {Max: 10e6, Answers: true, Class: w.Waiting.Queue.WrittenShare(0)},
		other: {Max: 20e6, Answers: true, Class: w.Waiting.Queue.WrittenShare(1)},
		paced: {Max: 30e6},
	} {
		if got := w.Rules.Arriving[id]; got != want {
			t.Errorf("contract %d: %+v, want %+v", id, got, want)
		}
		for link, l := range w.Links {
			if waits := link == "eth0" && id != paced; l.Rules.Contracts[id].Answers != waits || l.Queue.Leaf == LeafFQ {
				t.Errorf("%s of %d: %+v", link, id, l.Rules.Contracts[id])
			}
		}
	}
	if got := w.Received["first"].String(); !strings.HasPrefix(got, "by htb: the best here: ") {
		t.Error(got)
	}
	if without := w.Received["first"].Without; len(without) != 1 || !strings.Contains(without["eth1"], "no Ethernet header") {
		t.Errorf("without %v", without)
	}
	if d := Diff(w.State, w); len(d) != 0 {
		t.Errorf("to itself: %v", d)
	}
	without := w.State
	without.Waiting = Waiting{}
	if d := Diff(without, w); len(d) != 1 || d[0].String() != "~ sockets: no answers wait -> answers wait in htb" {
		t.Errorf("without a queue: %v", d)
	}
	without.Waiting = Waiting{Queue: w.Waiting.Queue, Drift: []string{"it is down"}}
	if d := Diff(without, w); len(d) != 1 || d[0].String() != "~ sockets: answers wait in htb (it is down) -> answers wait in htb" {
		t.Errorf("with drift: %v", d)
	}

	// Who stays keeps the class, whoever goes.
	q := parsed(t, strings.Replace(receivedByClass, "  first: {match: [{port: 1}], ingress: {max: 10Mbit}}\n", "", 1))
	left := wanted(t, q, f, w.IDs)
	if got := left.Rules.Arriving[left.Contracts["other"].ID]; got != w.Rules.Arriving[other] {
		t.Errorf("other now %+v", got)
	}
	if diff := cmp.Diff([]Share{{}, {Max: 20e6}}, left.Waiting.Queue.Shares); diff != "" {
		t.Error(diff)
	}
	gone := parsed(t, "version: 1\nlinks: {eth0: {}}\n")
	if end := wanted(t, gone, f, w.IDs); end.Waiting.Any() {
		t.Errorf("nobody's answers wait: %+v", end.Waiting)
	}
}

// TestWaitingIsFull: what there is no class for is held without.
func TestWaitingIsFull(t *testing.T) {
	text := "version: 1\nlinks: {eth0: {scheduler: none}}\nworkloads:\n"
	for n := range MaxShares + 1 {
		text += fmt.Sprintf("  w%d: {match: [{port: %d}], ingress: {max: 10Mbit}}\n", n, 1+n)
	}
	p := parsed(t, text)
	w := wanted(t, p, hostOf(p), IDs{})
	if n := countShares(w.Waiting.Queue.Shares); n != MaxShares || w.Waiting.Queue.Check() != nil {
		t.Errorf("%d classes, %v", n, w.Waiting.Queue.Check())
	}
	outside := 0
	for name, rung := range w.Received {
		limit := w.Rules.Arriving[w.Contracts[name].ID]
		if (rung.Method == policy.MethodHTB) != (limit.Class != 0) || limit.Answers != (limit.Class != 0) {
			t.Errorf("%s: %s, %+v", name, rung, limit)
		}
		if limit.Class == 0 {
			outside++
			if want := "by pace: the best here: answers of 256 workloads wait already, and there is no room for more"; rung.String() != want {
				t.Error(rung)
			}
		}
	}
	if outside != 1 {
		t.Errorf("%d are without a class", outside)
	}
}

// TestAnswersOnSomeLinks: what is received waits for its answers on the links that lose nothing by it, and no other one is
// asked to keep them; a policy that names it asks all.
func TestAnswersOnSomeLinks(t *testing.T) {
	const text = `version: 1
links: {lan: {}, tunnel: {scheduler: none}, wan: {rate: 50Mbit}}
workloads:
  mirror: {match: [{port: 1}], ingress: {max: 10Mbit}}
`
	const shaped = `htb holds link "wan" to 50Mbit, and keeps no packet until its time of departure`
	const bare = `scheduler none of link "tunnel" keeps no packet until its time of departure`
	p := parsed(t, text)
	w := wanted(t, p, hostOf(p), IDs{})
	mirror := w.Contracts["mirror"].ID
	if got := w.Received["mirror"].String(); got != "by edt: the best here: "+bare+"; "+shaped {
		t.Error(got)
	}
	if got := w.Rules.Arriving[mirror]; got != (Limit{Max: 10e6, Answers: true}) {
		t.Errorf("held as %+v", got)
	}
	for link, l := range w.Links {
		if keeps := link == "lan"; l.Rules.Contracts[mirror].Answers != keeps || (l.Queue.Leaf == LeafFQ) != keeps || l.Queue.Check() != nil {
			t.Errorf("%s: %s, %+v", link, l.Queue, l.Rules.Contracts[mirror])
		}
	}
	if d := Diff(w.State, w); len(d) != 0 {
		t.Errorf("to itself: %v", d)
	}
	none := parsed(t, strings.Replace(text, "lan: {}, ", "", 1))
	if got := wanted(t, none, hostOf(none), IDs{}).Received["mirror"].String(); got != "by htb: the best here: "+bare {
		t.Error(got)
	}
	asked := parsed(t, strings.NewReplacer("10Mbit}", "10Mbit, method: edt}", "tunnel: {scheduler: none}, ", "").Replace(text))
	if errs := Check(asked, hostOf(asked)); len(errs) != 1 || errs[0].Message != `workload "mirror": method edt can not hold its ingress: `+shaped {
		t.Errorf("where the policy asks for it: %v", errs)
	}
}

// TestAnswersOnOthersLinks: where one limit asks all links to keep answers, those of a limit that does not wait there as well.
func TestAnswersOnOthersLinks(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {}, eth1: {}}
workloads:
  auto: {match: [{port: 1}], ingress: {max: 10Mbit}}
  named: {match: [{port: 2}], ingress: {max: 20Mbit, method: edt}}
`)
	f := hostOf(p)
	f.Links["eth0"] = LinkFacts{Speed: 1e9, TXQueues: 4, MQPrioHW: true}
	if got := HowReceived(p, f)["auto"].Without; len(got) != 1 || got["eth0"] == "" {
		t.Errorf("by itself it does without %v", got)
	}
	w := wanted(t, p, f, IDs{})
	if got := w.Received["auto"].String(); got != "by edt: the best there is" {
		t.Error(got)
	}
	for link, l := range w.Links {
		for _, name := range []string{"auto", "named"} {
			if l.Queue.Leaf != LeafFQ || !l.Rules.Contracts[w.Contracts[name].ID].Answers {
				t.Errorf("%s on %s: %s", name, link, l.Queue)
			}
		}
	}
}
