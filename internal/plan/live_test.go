package plan

import (
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

// unpaced is a host whose kernel can not pace.
func unpaced(p *policy.Policy) Facts {
	f := hostOf(p)
	f.Features.Atomics = false
	return f
}

// given are the contracts of two processes, of which one is limited.
var given = []Explicit{
	{"pid 1", policy.Contract{Priority: policy.Priority{Default: policy.Unset}, Egress: policy.Egress{Limit: policy.Limit{Max: 10e6}}}},
	{"pid 2", policy.Contract{Priority: policy.Priority{Default: 3}}},
}

// TestPreparedTimes: where nothing can be paced, links whose rung allows it keep times of
// departure before there is a limit; elsewhere nothing changes.
func TestPreparedTimes(t *testing.T) {
	for links, why := range map[string]string{
		"{eth0: {}, eth1: {scheduler: fq}, eth2: {scheduler: ets}}": "",
		"{eth0: {}, eth1: {rate: 10Mbit}}":                          `link "eth1": prio is below htb here, which keeps no packet until its time of departure`,
		"{eth0: {}, eth1: {rate: 10Mbit, scheduler: htb}}":          `link "eth1": htb keeps no packet until its time of departure`,
		"{eth0: {}, eth1: {scheduler: none}}":                       `link "eth1": scheduler none has no queue of Weir's, which would keep a packet until its time of departure`,
	} {
		p := parsed(t, "version: 1\nlinks: "+links+"\nworkloads:\n  own: {match: [{port: 1}], priority: 3}\n")
		w, errs := Wanted(p, unpaced(p), IDs{}, given)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		id := w.Contracts["pid 1"].ID
		limit := Limit{}
		if why == "" {
			limit = Limit{Max: 10e6, Departs: true}
		}
		if got := w.Rules.Limits[id]; got != limit {
			t.Errorf("%s: %v", links, got)
		}
		for link, l := range w.Links {
			if (l.Queue.Leaf == LeafFQ) != (why == "") || l.Queue.Check() != nil || l.Rules.Contracts[id].Limited != (why == "") {
				t.Errorf("%s: %s: %+v", links, link, l)
			}
		}
		if why != "" {
			why = "BPF programs of this kernel can not count a limit together (no atomic fetch); " + why
		}
		if len(w.Unheld) > 1 || w.Unheld["pid 1"][PromiseEgress] != why || (w.Live.Sends == policy.MethodEDT) != (why == "") {
			t.Errorf("%s: by %v, but for %v", links, w.Live, w.Unheld)
		}
		judged := *p
		judged.Workloads = append(judged.Workloads, policy.Workload{Name: "pid 1", Contract: given[0].Contract})
		for _, j := range Judge(&judged, w, nil, Measured{}) {
			if j.Workload == "pid 1" && (j.Verdict == Broken) != (why != "") {
				t.Errorf("%s: %+v", links, j)
			}
		}
		paced, errs := Wanted(p, hostOf(p), IDs{}, given)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if paced.Live.Sends != policy.MethodPace || paced.Rules.Limits[id] != (Limit{Max: 10e6}) || strings.Contains(lines(Diff(State{}, paced)), "times of departure") {
			t.Errorf("%s: where it can be paced: by %v, %v", links, paced.Live, paced.Rules.Limits[id])
		}
	}
}

// TestPreparedAnswers: links keep times of departure for answers that wait beside the policy, where their rung allows it, and
// where it does not the limit is held by nothing, and that is said.
func TestPreparedAnswers(t *testing.T) {
	waits := policy.Contract{
		Priority: policy.Priority{Default: policy.Unset},
		Ingress:  policy.Bandwidth{Limit: policy.Limit{Max: 20e6, Method: policy.MethodEDT}},
	}
	for links, why := range map[string]string{
		"{eth0: {}, eth1: {scheduler: fq}}":   "",
		"{eth0: {}, eth1: {rate: 10Mbit}}":    `link "eth1": prio is below htb here, which keeps no packet until its time of departure`,
		"{eth0: {}, eth1: {scheduler: none}}": `link "eth1": scheduler none has no queue of Weir's, which would keep a packet until its time of departure`,
	} {
		p := parsed(t, "version: 1\nlinks: "+links+"\nworkloads:\n  own: {match: [{port: 1}], priority: 3}\n")
		w, errs := Wanted(p, hostOf(p), IDs{}, []Explicit{{"pid 1", waits}})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		id := w.Contracts["pid 1"].ID
		limit := Limit{}
		if why == "" {
			limit = Limit{Max: 20e6, Answers: true}
		}
		if got := w.Rules.Arriving[id]; got != limit {
			t.Errorf("%s: %v", links, got)
		}
		for link, l := range w.Links {
			if (l.Queue.Leaf == LeafFQ) != (why == "") || l.Queue.Check() != nil || l.Rules.Contracts[id].Answers != (why == "") {
				t.Errorf("%s: %s: %+v", links, link, l)
			}
		}
		if got := w.Unheld["pid 1"][PromiseIngress]; got != why {
			t.Errorf("%s: not held as %q, want %q", links, got, why)
		}
		judged := *p
		judged.Workloads = append(judged.Workloads, policy.Workload{Name: "pid 1", Contract: waits})
		broken := false
		for _, j := range Judge(&judged, w, nil, Measured{}) {
			broken = broken || j.Workload == "pid 1" && j.Promise == PromiseIngress && strings.HasSuffix(j.Evidence, why) && j.Verdict == Broken
		}
		if broken != (why != "") {
			t.Errorf("%s: judged to be broken: %v", links, broken)
		}
	}
}

// TestBesideTakesLinksAsTheyAre: what a group is given beside the policy has its answers wait where links keep times for others,
// or else in a class, and changes no link; unless it says so.
func TestBesideTakesLinksAsTheyAre(t *testing.T) {
	for _, c := range []struct {
		others string
		method policy.Method
		want   policy.Method
	}{
		{"egress: {max: 1Gbit}", policy.MethodAuto, policy.MethodHTB},
		{"ingress: {max: 1Gbit}", policy.MethodAuto, policy.MethodEDT},
		{"egress: {max: 1Gbit, method: edt}", policy.MethodAuto, policy.MethodEDT},
		{"egress: {max: 1Gbit}", policy.MethodEDT, policy.MethodEDT},
		{"ingress: {max: 1Gbit}", policy.MethodPace, policy.MethodPace},
		{"ingress: {max: 1Gbit}", policy.MethodHTB, policy.MethodHTB},
	} {
		p := parsed(t, "version: 1\nlinks: {eth0: {}}\nworkloads:\n  own: {match: [{port: 1}], "+c.others+"}\n  set: {match: [{port: 2}], ingress: {max: 1Mbit}}\n")
		p.Workloads[1].Beside, p.Workloads[1].Contract.Ingress.Method = true, c.method
		w := wanted(t, p, hostOf(p), IDs{})
		set := w.Contracts["set"].ID
		byClass, answer := c.want == policy.MethodHTB, c.want != policy.MethodPace
		if got := w.Rules.Arriving[set]; got.Max != 1e6 || got.Answers != answer || (got.Class != 0) != byClass || w.Links["eth0"].Rules.Contracts[set].Answers != answer {
			t.Errorf("beside %s, %s: %s by %s", c.others, c.method, got, w.Received["set"])
		}
		if n := countShares(w.Waiting.Queue.Shares); (n == 1) != byClass {
			t.Errorf("beside %s, %s: %d classes", c.others, c.method, n)
		}
		if keeps := w.Links["eth0"].Queue.Leaf == LeafFQ; keeps != (c.want == policy.MethodEDT || strings.HasPrefix(c.others, "ingress")) {
			t.Errorf("beside %s, %s: link keeps times: %v", c.others, c.method, keeps)
		}
	}
}

// TestNoAnswers: answers wait for their times beside a policy whose links keep those already, and in a class by links of Ethernet.
func TestNoAnswers(t *testing.T) {
	p := parsed(t, "version: 1\nlinks: {eth0: {}}\nworkloads:\n  own: {match: [{port: 1}], priority: 3}\n")
	weightless := hostOf(p)
	weightless.Features.Weighs = false
	timed, bare := Queue{Scheduler: policy.Prio, Leaf: LeafFQ}, Queue{Scheduler: policy.Prio, Leaf: LeafBFIFO}
	for _, c := range []struct {
		by     policy.Method
		queues map[string]Queue
		f      Facts
		want   string
	}{
		{policy.MethodEDT, map[string]Queue{"eth0": timed}, hostOf(p), ""},
		{policy.MethodEDT, map[string]Queue{"eth0": timed, "eth1": bare}, hostOf(p), `link "eth1" keeps no packet until its time of departure, where the policy has no limit by edt`},
		{policy.MethodEDT, nil, hostOf(p), "no link keeps packets until their times of departure"},
		{policy.MethodEDT, map[string]Queue{"eth0": timed}, unpaced(p), "BPF programs of this kernel can not count a limit together (no atomic fetch)"},
		{policy.MethodHTB, map[string]Queue{"eth0": bare}, hostOf(p), ""},
		{policy.MethodHTB, map[string]Queue{"eth0": bare, "tun0": bare}, hostOf(p), `link "tun0": its packets have no Ethernet header, with which they could wait elsewhere`},
		{policy.MethodHTB, nil, hostOf(p), "no link is declared, on which what is answered could wait"},
		{policy.MethodHTB, map[string]Queue{"eth0": bare}, weightless, "kernel has no htb that counts packets as what they stand for (htb, and size tables)"},
		{policy.MethodHTB, map[string]Queue{"eth0": bare}, unpaced(p), "BPF programs of this kernel can not count a limit together (no atomic fetch)"},
		{policy.MethodPace, nil, hostOf(p), ""},
	} {
		if got := NoAnswers(c.by, c.queues, c.f); got != c.want {
			t.Errorf("%s, %v: %q, want %q", c.by, c.queues, got, c.want)
		}
	}
}

// TestLiveOnSomeLinks: what is received waits for its answers where one link keeps them already, but where all are asked to, and
// each contract is told on which.
func TestLiveOnSomeLinks(t *testing.T) {
	p := parsed(t, "version: 1\nlinks: {eth0: {}, eth1: {rate: 10Mbit}}\nworkloads:\n  own: {match: [{port: 1}], ingress: {max: 1Gbit}}\n  set: {match: [{port: 2}], ingress: {max: 1Mbit}}\n")
	p.Workloads[1].Beside = true
	given := policy.Contract{Priority: policy.Priority{Default: policy.Unset}, Ingress: policy.Bandwidth{Limit: policy.Limit{Max: 2e6}}}
	w, errs := Wanted(p, hostOf(p), IDs{}, []Explicit{{"pid 1", given}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if w.Live != (Live{policy.MethodPace, policy.MethodEDT}) {
		t.Errorf("by %v", w.Live)
	}
	for _, name := range []string{"own", "set", "pid 1"} {
		id := w.Contracts[name].ID
		if !w.Rules.Arriving[id].Answers || !w.Links["eth0"].Rules.Contracts[id].Answers || w.Links["eth1"].Rules.Contracts[id].Answers {
			t.Errorf("%s: %+v, %+v", name, w.Rules.Arriving[id], w.Links)
		}
	}
	const why = `by edt: the best here: link "eth1": prio is below htb here, which keeps no packet until its time of departure`
	if got := w.Received["set"].String(); got != why {
		t.Error(got)
	}
	given.Ingress.Method = policy.MethodEDT
	w, _ = Wanted(p, hostOf(p), IDs{}, []Explicit{{"pid 1", given}})
	if got := w.Unheld["pid 1"][PromiseIngress]; !strings.HasPrefix(why, "by edt: the best here: "+got) || got == "" {
		t.Errorf("where all are asked: %q", got)
	}
}

// TestLiveOn: a queue from before keeps no times, though it might.
func TestLiveOn(t *testing.T) {
	p := parsed(t, "version: 1\nlinks: {eth0: {}}\nworkloads:\n  own: {match: [{port: 1}], priority: 3}\n")
	f := unpaced(p)
	for why, queues := range map[string]map[string]Queue{
		`link "eth0" keeps no packet until its time of departure before the next weir apply`: {"eth0": {Scheduler: policy.Prio, Leaf: LeafBFIFO}},
		"no link keeps packets until their times of departure":                               nil,
	} {
		if how, got := LiveOn(queues, f); how != (Live{}) || !strings.HasSuffix(got, "; "+why) {
			t.Errorf("%v: by %v, %s", queues, how, got)
		}
	}
	f.Features.TailCalls = false
	if how, why := LiveOn(map[string]Queue{"eth0": {Scheduler: policy.Prio, Leaf: LeafFQ}}, f); how != (Live{}) || !strings.Contains(why, "tail calls") {
		t.Errorf("without tail calls: by %v, %s", how, why)
	}
}

// TestGivenByClass: answers of what a process is given wait in a class, where no link keeps times for others, and where it names
// that; it has no other's.
func TestGivenByClass(t *testing.T) {
	p := parsed(t, "version: 1\nlinks: {eth0: {rate: 50Mbit}, tun0: {scheduler: none}}\nworkloads:\n  own: {match: [{port: 1}], ingress: {max: 1Gbit}}\n")
	f := hostOf(p)
	f.Links["tun0"] = LinkFacts{Index: 3}
	of := func(max policy.Rate, by policy.Method) policy.Contract {
		return policy.Contract{Priority: policy.Priority{Default: policy.Unset}, Ingress: policy.Bandwidth{Limit: policy.Limit{Max: max, Method: by}}}
	}
	w, errs := Wanted(p, f, IDs{}, []Explicit{{"pid 1", of(2e6, "")}, {"pid 2", of(3e6, policy.MethodPace)}, {"pid 3", of(0, "")}, {"pid 4", of(4e6, policy.MethodHTB)}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if w.Live != (Live{policy.MethodPace, policy.MethodHTB}) {
		t.Errorf("by %v", w.Live)
	}
	classes := map[uint32]string{}
	for name, max := range map[string]policy.Rate{"own": 1e9, "pid 1": 2e6} {
		limit := w.Rules.Arriving[w.Contracts[name].ID]
		n, has := w.IDs.Shares[WaitingRoom][name]
		if !has || !limit.Answers || limit.Class != (Queue{}).WrittenShare(n) || w.Waiting.Queue.Shares[n].Max != max || classes[limit.Class] != "" {
			t.Errorf("%s: %+v in class %d of %+v", name, limit, n, w.Waiting)
		}
		classes[limit.Class] = name
	}
	if got := w.Rules.Arriving[w.Contracts["pid 2"].ID]; got != (Limit{Max: 3e6}) {
		t.Errorf("by pace: %+v", got)
	}
	if n := countShares(w.Waiting.Queue.Shares); n != 2 {
		t.Errorf("%d classes", n)
	}
	if got := w.Unheld["pid 4"][PromiseIngress]; got != `link "tun0": its packets have no Ethernet header, with which they could wait elsewhere` {
		t.Errorf("where all are asked: %q", got)
	}
	for link, answers := range map[string]bool{"eth0": true, "tun0": false} {
		if got := w.Links[link].Rules.Contracts[w.Contracts["pid 1"].ID]; got.Answers != answers {
			t.Errorf("%s: %+v", link, got)
		}
	}
	if !w.Live.ByClass(of(1e6, "")) || w.Live.ByClass(of(1e6, policy.MethodPace)) || w.Live.ByClass(of(0, "")) {
		t.Error("not by what it names")
	}
}
