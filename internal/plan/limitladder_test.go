package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

// TestLimitLadder: a limit is paced where the kernel can, else htb holds it where the link
// can; a method that is asked for is taken, or refused with the reason.
func TestLimitLadder(t *testing.T) {
	const (
		atomics = "BPF programs of this kernel can not count a limit together (no atomic fetch)"
		best    = "the best there is"
		asked   = "the policy asks for it"
		noFQ    = "; kernel has no fq qdisc, which edt waits in"
	)
	one := []policy.Link{{Name: "eth0", Scheduler: policy.Auto}}
	for name, c := range map[string]struct {
		method  policy.Method
		max     policy.Rate
		burst   policy.Size
		pps     policy.PacketRate
		links   []policy.Link
		divided map[string]string
		change  func(*Facts)
		want    string // method and why
		refuse  string
	}{
		"auto":              {change: func(*Facts) {}, want: "by pace: " + best},
		"pace":              {method: policy.MethodPace, change: func(*Facts) {}, want: "by pace: " + asked},
		"htb":               {method: policy.MethodHTB, change: func(*Facts) {}, want: "by htb: " + asked},
		"auto, no pace":     {change: func(f *Facts) { f.Features.Atomics = false }, want: "by edt: the best here: " + atomics},
		"auto, no fq":       {change: func(f *Facts) { f.Features.Atomics = false; delete(f.Features.Qdiscs, "fq") }, want: "by htb: the best here: " + atomics + noFQ},
		"auto, shaped":      {links: []policy.Link{{Name: "eth0", Scheduler: policy.Auto, Rate: 1e8}}, change: func(f *Facts) { f.Features.Atomics = false }, want: "by htb: the best here: " + atomics + `; htb holds link "eth0" to 100Mbit, and keeps no packet until its time of departure`},
		"auto, divided":     {divided: map[string]string{"eth0": "x"}, change: func(f *Facts) { f.Features.Atomics = false }, want: "by htb: the best here: " + atomics + `; htb divides link "eth0", as workload "x" asks, and keeps no packet until its time of departure`},
		"edt":               {method: policy.MethodEDT, change: func(*Facts) {}, want: "by edt: " + asked},
		"edt on fq":         {method: policy.MethodEDT, links: []policy.Link{{Name: "eth0", Scheduler: policy.FQ}}, change: func(*Facts) {}, want: "by edt: " + asked},
		"edt on mqprio":     {method: policy.MethodEDT, links: []policy.Link{{Name: "eth0", Scheduler: policy.MQPrio}}, change: func(*Facts) {}, refuse: `scheduler mqprio of link "eth0" keeps no packet until its time of departure`},
		"edt, and can't":    {method: policy.MethodEDT, change: func(f *Facts) { f.Features.TailCalls = false }, refuse: "BPF programs of this kernel can not go on in the one that gives times of departure (no tail calls from functions)"},
		"not known":         {change: func(f *Facts) { f.Features.Atomics, f.Features.Unknown[FeatureAtomics] = false, "busy" }, want: "by pace: " + best},
		"pace, and can't":   {method: policy.MethodPace, change: func(f *Facts) { f.Features.Atomics = false }, refuse: atomics},
		"a burst is paced":  {burst: 64 << 10, change: func(*Facts) {}, want: "by pace: " + best},
		"a burst, no pace":  {burst: 64 << 10, change: func(f *Facts) { f.Features.Atomics = false }, refuse: atomics + "; edt lets no burst of 64KiB through; htb lets no burst of 64KiB through"},
		"packets are paced": {pps: 10, change: func(*Facts) {}, want: "by pace: " + best},
		"packets, no pace":  {pps: 10, change: func(f *Facts) { f.Features.Atomics = false }, refuse: atomics + "; edt counts no packets; htb counts no packets"},
		"neither": {change: func(f *Facts) { f.Features.Atomics, f.Features.Qdiscs = false, map[string]bool{"prio": true} },
			refuse: atomics + noFQ + "; kernel has no htb qdisc"},
		"all of the line":         {method: policy.MethodHTB, max: 1_000_000_000, change: func(*Facts) {}, want: "by htb: " + asked},
		"more than the line":      {method: policy.MethodHTB, max: 1_000_000_008, change: func(*Facts) {}, refuse: "htb has 1Gbit there, less than the limit"},
		"more than the rate":      {method: policy.MethodHTB, links: []policy.Link{{Name: "eth0", Scheduler: policy.HTB, Rate: 1e6}}, change: func(*Facts) {}, refuse: "htb has 1Mbit there, less than the limit"},
		"no speed":                {method: policy.MethodHTB, change: func(f *Facts) { f.Links["eth0"] = LinkFacts{} }, refuse: "htb needs a rate, and the device reports no speed"},
		"a rate in place of it":   {method: policy.MethodHTB, links: []policy.Link{{Name: "eth0", Scheduler: policy.HTB, Rate: 1e8}}, change: func(f *Facts) { f.Links["eth0"] = LinkFacts{} }, want: "by htb: " + asked},
		"no htb":                  {method: policy.MethodHTB, change: func(f *Facts) { f.Features.Qdiscs = map[string]bool{} }, refuse: "kernel has no htb qdisc"},
		"another scheduler":       {method: policy.MethodHTB, links: []policy.Link{{Name: "eth0", Scheduler: policy.Prio}}, change: func(*Facts) {}, refuse: `scheduler prio of link "eth0" holds nobody to a rate`},
		"several links":           {links: append(one, one...), change: func(f *Facts) { f.Features.SockOps = false; delete(f.Features.Qdiscs, "fq") }, refuse: "BPF programs of this kernel can not pace TCP (no cgroup sock_ops)" + noFQ + "; htb holds one link each, and this limit is of 2 together: name the links"},
		"several links wait":      {links: append(one, one...), change: func(f *Facts) { f.Features.SockOps = false }, want: "by edt: the best here: BPF programs of this kernel can not pace TCP (no cgroup sock_ops)"},
		"several links are paced": {links: append(one, one...), change: func(*Facts) {}, want: "by pace: " + best},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Root: true, Features: kernel(), Links: map[string]LinkFacts{"eth0": {Speed: 1_000_000_000}}}
			c.change(&f)
			if c.max == 0 {
				c.max = 50_000_000
			}
			if c.links == nil {
				c.links = one
			}
			rung, why := ChooseLimit(policy.Limit{Max: c.max, Burst: c.burst, PPS: c.pps, Method: c.method}, c.links, c.divided, f)
			if why != c.refuse || why == "" && rung.String() != c.want {
				t.Errorf("%s, %q; want %s, %q", rung, why, c.want, c.refuse)
			}
			if queued := strings.HasPrefix(c.want, "by htb") || strings.HasPrefix(c.want, "by edt"); queued != (len(rung.Lacks) > 0) {
				t.Errorf("it lacks %q", rung.Lacks)
			}
		})
	}
}

// limitsByHTB is a host and a policy of which htb holds some limits.
const limitsByHTB = `version: 1
links: {eth0: {rate: 100Mbit}, eth1: {}}
workloads:
  here: {match: [{port: 1}], egress: {links: {eth0: {max: 10Mbit, method: htb}}}, priority: 8}
  both: {match: [{port: 2}], egress: {max: 50Mbit, links: {eth0: {max: 30Mbit, min: 20Mbit, method: htb}, eth1: {max: 40Mbit}}}}
  paced: {match: [{port: 3}], egress: {links: {eth0: {max: 10Mbit, method: pace}}}}
  share: {match: [{port: 4}], egress: {links: {eth0: {min: 1Mbit}}}}
`

// TestLimitsInClasses: what htb holds is in a class of the link, and charged to no
// budget; what is paced is in none.
func TestLimitsInClasses(t *testing.T) {
	p := parsed(t, limitsByHTB)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	q := w.Links["eth0"].Queue
	want := []Share{{Class: 4, Max: 10_000_000}, {Min: 20_000_000, Max: 30_000_000}, {Min: 1_000_000}}
	if q.Scheduler != policy.HTB || !slices.Equal(q.Shares, want) || q.Check() != nil {
		t.Fatalf("%+v", q)
	}
	if text := q.String(); text != "htb with 8 classes at 100Mbit, 21Mbit of it in 2 shares, with 2 limits" {
		t.Error(text)
	}
	if other := w.Links["eth1"].Queue; other.Shares != nil {
		t.Errorf("eth1: %+v", other)
	}
	of := func(name, link string) Promise { return w.Links[link].Rules.Contracts[w.Contracts[name].ID] }
	for name, text := range map[string]string{
		"here": "at most 10Mbit by htb, as class 4", "both": "at least 20Mbit, beyond that class 0, at most 30Mbit by htb",
		"paced": "as it comes", "share": "at least 1Mbit, beyond that class 0",
	} {
		if got := q.Describe(of(name, "eth0").Priority); got != text {
			t.Errorf("%s: %s, want %s", name, got, text)
		}
	}
	if p := of("here", "eth0"); p.Limited || p.Here.Max != 0 {
		t.Errorf("here has a budget: %+v", p)
	}
	if here, there := of("both", "eth0"), of("both", "eth1"); !here.Limited || here.Here.Max != 0 || there.Here.Max != 40_000_000 {
		t.Errorf("both: %+v on eth0, %+v on eth1", here, there)
	}
	if p := of("paced", "eth0"); p.Here.Max != 10_000_000 {
		t.Errorf("paced: %+v", p)
	}
	if len(w.Rules.Limits) != 1 {
		t.Errorf("limits of all links: %v", w.Rules.Limits)
	}
	if class := q.ClassOf(of("here", "eth0").Priority); class != 4 {
		t.Errorf("a limit alone is as urgent as class %d", class)
	}
	if d := Diff(w.State, w); len(d) != 0 {
		t.Errorf("to itself: %v", d)
	}
}

// TestLimitsAreTold: what is new says how it is held where that is not the best way.
func TestLimitsAreTold(t *testing.T) {
	p := parsed(t, limitsByHTB)
	w := wanted(t, p, hostOf(p), IDs{})
	var got []string
	for _, d := range Diff(State{}, w) {
		got = append(got, d.String())
	}
	want := `+ link eth0: htb with 8 classes at 100Mbit, 21Mbit of it in 2 shares, with 2 limits, in place of fq_codel
+ link eth1: prio with 16 classes, in place of fq_codel
+ workload both: eth0 at least 20Mbit, beyond that class 0, at most 30Mbit by htb, egress at most 50Mbit, eth1 at most 40Mbit (limit of eth0 by htb: the policy asks for it; all links together and eth1 by pace: the best there is): port: 2
+ workload here: eth0 at most 10Mbit by htb, as class 4, eth1 priority 8 (limit of eth0 by htb: the policy asks for it): port: 1
+ workload paced: eth0 at most 10Mbit (limit of eth0 by pace: the policy asks for it): port: 3
+ workload share: eth0 at least 1Mbit, beyond that class 0: port: 4`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestLimitsGoToClasses: where the kernel can not pace, limits of one link go to its htb,
// which auto then takes; the lower of two has it.
func TestLimitsGoToClasses(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {}}
workloads:
  a: {match: [{port: 1}], egress: {max: 50Mbit}}
  b: {match: [{port: 2}], egress: {max: 50Mbit, links: {eth0: {max: 20Mbit}}}}
  c: {match: [{port: 3}], priority: 3}
`)
	f := hostOf(p)
	if q := wanted(t, p, f, IDs{}).Links["eth0"].Queue; q.Scheduler == policy.HTB || q.Shares != nil {
		t.Fatalf("where it can: %+v", q)
	}
	f.Features.Atomics = false
	delete(f.Features.Qdiscs, "fq")
	w := wanted(t, p, f, IDs{})
	if q := w.Links["eth0"].Queue; q.Scheduler != policy.HTB || !slices.Equal(q.Shares, []Share{{Max: 50_000_000}, {Max: 20_000_000}}) {
		t.Errorf("%+v", q)
	}
	if why := w.Rungs["eth0"].Why; !strings.Contains(why, "prio holds nobody to a rate") {
		t.Error(why)
	}
	if lacks := w.Rungs["eth0"].Lacks; slices.Contains(lacks, "shares come before every priority") {
		t.Error(lacks)
	}
	together, here := w.CountLimits()
	if together+here != 0 {
		t.Errorf("%d and %d budgets", together, here)
	}
}
