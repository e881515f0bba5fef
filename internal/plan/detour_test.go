package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

const detours = `version: 1
links:
  eth0: {egress: {max: 20Mbit}, ingress: {max: 10Mbit, method: ifb}}
  eth1: {ingress: {max: 10Mbit}}
`

// TestArriveLadder: what arrives waits in an ifb where the policy asks for it, or where
// neither pace nor police can hold it; nothing that leaves ever does.
func TestArriveLadder(t *testing.T) {
	const (
		atomics  = "BPF programs of this kernel can not count a limit together (no atomic fetch)"
		noFilter = "kernel has no filters that police (cls_matchall, act_police and act_gact)"
		noIfb    = "kernel can not queue what arrives (ifb, cls_u32 and act_mirred)"
	)
	noAtomics := func(f *Facts) { f.Features.Atomics = false }
	neither := func(f *Facts) { f.Features.Atomics, f.Features.Police = false, false }
	ifb := policy.Limit{Method: policy.MethodIfb}
	for name, c := range map[string]struct {
		limit   policy.Limit
		promise string // PromiseIngress where there is none
		change  func(*Facts)
		want    string // method and why
		refuse  string
	}{
		"auto":              {want: "by pace: the best there is"},
		"ifb":               {limit: ifb, want: "by ifb: the policy asks for it"},
		"auto, no pace":     {change: noAtomics, want: "by police: the best here: " + atomics},
		"auto, neither":     {change: neither, want: "by ifb: the best here: " + atomics + "; " + noFilter},
		"egress, neither":   {promise: PromiseEgress, change: neither, refuse: atomics + "; " + noFilter},
		"ifb, and can't":    {limit: ifb, change: func(f *Facts) { f.Features.Ifb = false }, refuse: noIfb},
		"ifb, and no htb":   {limit: ifb, change: func(f *Facts) { f.Features.Qdiscs["htb"] = false }, refuse: "ifb needs htb to hold a rate, and the kernel has none"},
		"packets, neither":  {limit: policy.Limit{PPS: 10}, change: neither, refuse: atomics + "; police counts no packets; ifb counts no packets"},
		"a burst, neither":  {limit: policy.Limit{Burst: policy.MinPoliceBurst}, change: neither, refuse: atomics + "; " + noFilter + "; ifb lets no burst of 128KiB through"},
		"ifb, is not known": {limit: ifb, change: func(f *Facts) { f.Features.Ifb, f.Features.Unknown[FeatureIfb] = false, "busy" }, want: "by ifb: the policy asks for it"},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Root: true, Features: kernel()}
			if c.change != nil {
				c.change(&f)
			}
			if c.promise == "" {
				c.promise = PromiseIngress
			}
			c.limit.Max = 50_000_000
			rung, why := ChooseOwn(c.promise, c.limit, f)
			if c.promise == PromiseIngress {
				link := policy.Link{Name: "eth0", Ingress: policy.Bandwidth{Limit: c.limit}}
				asks := AsksForIfb(&policy.Policy{Links: []policy.Link{link}}, f)
				if held := why == "" && rung.Method == policy.MethodIfb; asks != (held || c.limit.Method == policy.MethodIfb || strings.HasSuffix(why, noIfb)) {
					t.Errorf("asks for an ifb: %t", asks)
				}
			}
			if why != c.refuse || why == "" && rung.String() != c.want {
				t.Errorf("%s, %q", rung, why)
			}
		})
	}
}

// TestDetours: what an ifb holds is in no budget, and the difference names it.
func TestDetours(t *testing.T) {
	p := parsed(t, detours)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	eth0, eth1 := w.Links["eth0"], w.Links["eth1"]
	want := Detour{Queue: Queue{Scheduler: policy.HTB, Rate: 1e7, Classes: 1, Leaf: LeafFQCodel}}
	if diff := cmp.Diff(want, eth0.Detour); diff != "" {
		t.Error(diff)
	}
	if eth0.Rules.Egress.Max != 2e7 || !eth0.Rules.Ingress.none() || eth0.Ingress || eth0.Policed.Any() {
		t.Errorf("%+v", eth0)
	}
	if eth1.Rules.Ingress.Max != 1e7 || eth1.Detour.Any() {
		t.Errorf("%+v", eth1)
	}
	if together, here := w.CountLimits(); together != 0 || here != 2 {
		t.Errorf("%d and %d budgets", together, here)
	}
	for name, c := range map[string]struct {
		change func(*LinkState)
		want   string
	}{
		"none":         {func(l *LinkState) { l.Detour = Detour{} }, "~ link eth0: ingress not queued -> at most 10Mbit by ifb\n"},
		"another":      {func(l *LinkState) { l.Detour.Queue.Rate = 3e7 }, "~ link eth0: ingress at most 30Mbit by ifb -> at most 10Mbit by ifb\n"},
		"another leaf": {func(l *LinkState) { l.Detour.Queue.Leaf = LeafBFIFO }, "~ link eth0: ingress " + unlikeLeaf(want.Queue) + "\n"},
		"drifted":      {func(l *LinkState) { l.Detour.Drift = []string{"weir2 is down", "this"} }, "~ link eth0: ingress by ifb (weir2 is down; this) -> at most 10Mbit by ifb\n"},
		"without a device": {func(l *LinkState) { l.Detour = Detour{Drift: []string{"weir2 is gone"}} },
			"~ link eth0: ingress by ifb (weir2 is gone) -> at most 10Mbit by ifb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			have := wanted(t, p, f, IDs{}).State
			drift(&have, c.change)
			if got := lines(Diff(have, w)); got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
	if got := lines(Diff(State{}, w)); got != "+ link eth0: prio with 16 classes, in place of fq_codel; egress at most 20Mbit; ingress at most 10Mbit by ifb\n"+
		"+ link eth1: prio with 16 classes, in place of fq_codel; ingress at most 10Mbit\n" {
		t.Errorf("%q", got)
	}
}

// TestArriving puts what arrives into words, on each rung.
func TestArriving(t *testing.T) {
	for method, want := range map[string][]string{
		"pace": {"at most 10Mbit"}, "police": {"at most 10Mbit (272KiB at once) by police"}, "ifb": {"at most 10Mbit by ifb"},
	} {
		p := parsed(t, "version: 1\nlinks: {eth0: {ingress: {max: 10Mbit, method: "+method+"}}, eth1: {}}\n")
		w := wanted(t, p, hostOf(p), IDs{})
		if diff := cmp.Diff(want, w.Links["eth0"].Arriving()); diff != "" {
			t.Error(diff)
		}
		if all := w.Links["eth1"].Arriving(); all != nil {
			t.Errorf("%s: %q", method, all)
		}
	}
}

// unlikeLeaf is how a queue differs from itself with a bfifo.
func unlikeLeaf(q Queue) string {
	other := q
	other.Leaf = LeafBFIFO
	is, shall := other.unlike(q)
	return is + " -> " + shall
}

// TestJudgeDetour: a queue that lets out more than its rate and what it may have in store
// is broken, whatever was read back.
func TestJudgeDetour(t *testing.T) {
	p := parsed(t, detours)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	owner := Owner{Contract: OwnIngress, Link: w.Links["eth0"].Index}
	const read = "read back: at most 10Mbit by ifb"
	most := policy.Rate(10_200_000 + 2*8*64<<10)
	for name, c := range map[string]struct {
		seen    map[Owner]Filtered
		have    func(*LinkState)
		verdict Verdict
		want    string
	}{
		"nothing":      {map[Owner]Filtered{owner: {}}, nil, Kept, read + "; nothing passes, 0 packets dropped"},
		"at its limit": {map[Owner]Filtered{owner: {Got: 10_023_456, Surely: most, Dropped: 7}}, nil, Kept, read + "; 10Mbit over 500ms, 7 packets dropped"},
		"above":        {map[Owner]Filtered{owner: {Got: 99e6, Surely: most + 1}}, nil, Broken, read + "; 99Mbit over 500ms, 0 packets dropped"},
		"nobody knows": {nil, nil, Unprovable, read + "; what passed below it could not be read"},
		"gone": {map[Owner]Filtered{owner: {}}, func(l *LinkState) { l.Detour = Detour{} }, Broken,
			"ingress not queued -> at most 10Mbit by ifb"},
	} {
		t.Run(name, func(t *testing.T) {
			have := wanted(t, p, f, IDs{}).State
			if c.have != nil {
				drift(&have, c.have)
			}
			all := Judge(p, w, Diff(have, w), Measured{Filtered: c.seen})
			want := Judgement{Link: "eth0", Promise: PromiseIngress, Priority: policy.Unset, Max: 1e7, Verdict: c.verdict, Evidence: c.want}
			if diff := cmp.Diff(want, all[1]); diff != "" {
				t.Error(diff)
			}
		})
	}
}
