package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/policy"
)

const police = `version: 1
links:
  eth0: {egress: {max: 20Mbit, method: police}, ingress: {max: 10Mbit, burst: 1MiB, method: police}}
  eth1: {egress: {max: 20Mbit}, ingress: {max: 10Mbit, method: police}}
`

// TestOwnLadder: a link's own limit is paced where the kernel can, else policed; a method
// that is asked for is taken, or refused with the reason.
func TestOwnLadder(t *testing.T) {
	const atomics = "BPF programs of this kernel can not count a limit together (no atomic fetch)"
	noAtomics := func(f *Facts) { f.Features.Atomics = false }
	noPolice := func(f *Facts) { f.Features.Police = false }
	const lacks = "kernel has no filters that police (cls_matchall, act_police and act_gact)"
	for name, c := range map[string]struct {
		limit  policy.Limit
		change func(*Facts)
		want   string // method and why
		refuse string
	}{
		"auto":              {want: "by pace: the best there is"},
		"pace":              {limit: policy.Limit{Method: policy.MethodPace}, want: "by pace: the policy asks for it"},
		"police":            {limit: policy.Limit{Method: policy.MethodPolice}, want: "by police: the policy asks for it"},
		"auto, no pace":     {change: noAtomics, want: "by police: the best here: " + atomics},
		"pace, and can't":   {limit: policy.Limit{Method: policy.MethodPace}, change: noAtomics, refuse: atomics},
		"police, and can't": {limit: policy.Limit{Method: policy.MethodPolice}, change: noPolice, refuse: lacks},
		"police, not known": {limit: policy.Limit{Method: policy.MethodPolice}, want: "by police: the policy asks for it",
			change: func(f *Facts) { f.Features.Police, f.Features.Unknown[FeaturePolice] = false, "busy" }},
		"neither":          {change: func(f *Facts) { noAtomics(f); noPolice(f) }, refuse: atomics + "; " + lacks},
		"packets, no pace": {limit: policy.Limit{PPS: 10}, change: noAtomics, refuse: atomics + "; police counts no packets"},
		"a small burst": {limit: policy.Limit{Burst: policy.MinPoliceBurst - 1}, change: noAtomics,
			refuse: atomics + "; police would drop every packet of 64KiB at a burst of 131071B"},
		"a burst": {limit: policy.Limit{Burst: policy.MinPoliceBurst}, change: noAtomics, want: "by police: the best here: " + atomics},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Root: true, Features: kernel()}
			if c.change != nil {
				c.change(&f)
			}
			c.limit.Max = 50_000_000
			rung, why := ChooseOwn(PromiseEgress, c.limit, f)
			if why != c.refuse || why == "" && rung.String() != c.want {
				t.Errorf("%s, %q", rung, why)
			}
		})
	}
}

// TestPolicedForm: what the kernel counts in units of 64 ns gives back each limit.
func TestPolicedForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := policy.Limit{
			Max:   policy.Rate(rapid.Uint64Range(uint64(policy.MinEgress), uint64(policy.MaxEgress)).Draw(t, "max")),
			Burst: policy.Size(rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(uint64(policy.MinPoliceBurst), 1<<30)).Draw(t, "burst")),
		}
		form := policed(l)
		if form.Max > l.Max || form.Max%8 != 0 || form.Burst%PoliceUnit != 0 || form.Burst < policy.MinPoliceBurst {
			t.Fatalf("%+v", form)
		}
		rate := float64(form.Max) / 8
		units := float64(uint64(float64(form.Burst) * 1e9 / rate / 64))
		if units >= 1<<32 {
			t.Fatalf("%+v are %.0f units of 64 ns", form, units)
		}
		if back := policy.Size(units*64*rate/1e9/float64(PoliceUnit)+0.5) * PoliceUnit; back != form.Burst {
			t.Fatalf("%+v comes back with a burst of %d", form, back)
		}
	})
}

// TestPolicedLinks: what filters hold is in no budget, and the difference names it.
func TestPolicedLinks(t *testing.T) {
	p := parsed(t, police)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	eth0, eth1 := w.Links["eth0"], w.Links["eth1"]
	// 20 Mbit/s give 500,000 bytes in 200 ms, in units of 4 KiB.
	want := Policed{Egress: []Limit{{Max: 2e7, Burst: 540 << 10}}, Ingress: []Limit{{Max: 1e7, Burst: 1 << 20}}}
	if diff := cmp.Diff(want, eth0.Policed); diff != "" {
		t.Error(diff)
	}
	if !eth0.Rules.Egress.none() || !eth0.Rules.Ingress.none() || eth0.Ingress {
		t.Errorf("%+v", eth0)
	}
	if eth1.Rules.Egress.Max != 2e7 || eth1.Policed.Egress != nil || eth1.Policed.Ingress == nil || eth1.Ingress {
		t.Errorf("%+v", eth1)
	}
	if together, here := w.CountLimits(); together != 0 || here != 1 {
		t.Errorf("%d and %d budgets", together, here)
	}
	for name, c := range map[string]struct {
		change func(*LinkState)
		want   string
	}{
		"none":    {func(l *LinkState) { l.Policed = Policed{} }, "~ link eth0: egress not policed -> at most 20Mbit (540KiB at once) by police; ingress not policed -> at most 10Mbit (1MiB at once) by police\n"},
		"another": {func(l *LinkState) { l.Policed.Egress = []Limit{{Max: 3e7, Burst: 512 << 10}} }, "~ link eth0: egress at most 30Mbit (512KiB at once) by police -> at most 20Mbit (540KiB at once) by police\n"},
		"two": {func(l *LinkState) {
			l.Policed.Ingress = append(slices.Clone(l.Policed.Ingress), Limit{Max: 3e7, Burst: 512 << 10})
		},
			"~ link eth0: ingress at most 10Mbit (1MiB at once) by police and 1 more -> at most 10Mbit (1MiB at once) by police\n"},
		"tampered with": {func(l *LinkState) { l.Policed.Ingress = []Limit{{}} }, "~ link eth0: ingress not limited by police -> at most 10Mbit (1MiB at once) by police\n"},
	} {
		t.Run(name, func(t *testing.T) {
			have := wanted(t, p, f, IDs{}).State
			drift(&have, c.change)
			if got := lines(Diff(have, w)); got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
	if got := lines(Diff(State{}, w)); got != "+ link eth0: prio with 16 classes, in place of fq_codel; egress at most 20Mbit (540KiB at once) by police; ingress at most 10Mbit (1MiB at once) by police\n"+
		"+ link eth1: prio with 16 classes, in place of fq_codel; egress at most 20Mbit; ingress at most 10Mbit (272KiB at once) by police\n" {
		t.Errorf("%q", got)
	}
}

// TestJudgePoliced: a filter that lets more through than its limit and its bucket is
// broken, whatever was read back.
func TestJudgePoliced(t *testing.T) {
	p := parsed(t, police)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	owner := Owner{Contract: OwnEgress, Link: w.Links["eth0"].Index}
	const read = "read back: at most 20Mbit (540KiB at once) by police"
	most := policy.Rate(20_400_000 + 2*8*540<<10)
	for name, c := range map[string]struct {
		seen    map[Owner]Filtered
		have    func(*LinkState)
		verdict Verdict
		want    string
	}{
		"nothing":       {map[Owner]Filtered{owner: {Dropped: 3}}, nil, Kept, read + "; nothing passes, 3 packets dropped"},
		"at its limit":  {map[Owner]Filtered{owner: {Got: 20_123_456, Surely: 2e7}}, nil, Kept, read + "; 20.1Mbit over 500ms, 0 packets dropped"},
		"with a bucket": {map[Owner]Filtered{owner: {Got: 99e6, Surely: most}}, nil, Kept, read + "; 99Mbit over 500ms, 0 packets dropped"},
		"above":         {map[Owner]Filtered{owner: {Got: 99e6, Surely: most + 1}}, nil, Broken, read + "; 99Mbit over 500ms, 0 packets dropped"},
		"nobody knows":  {nil, nil, Unprovable, read + "; what passed below it could not be read"},
		"gone": {map[Owner]Filtered{owner: {}}, func(l *LinkState) { l.Policed.Egress = nil }, Broken,
			"egress not policed -> at most 20Mbit (540KiB at once) by police"},
	} {
		t.Run(name, func(t *testing.T) {
			have := wanted(t, p, f, IDs{}).State
			if c.have != nil {
				drift(&have, c.have)
			}
			all := Judge(p, w, Diff(have, w), Measured{Filtered: c.seen})
			want := Judgement{Link: "eth0", Promise: PromiseEgress, Priority: policy.Unset, Max: 2e7, Verdict: c.verdict, Evidence: c.want}
			if diff := cmp.Diff(want, all[0]); diff != "" {
				t.Error(diff)
			}
			if terms := all[0].Terms(); terms != "egress at most 20Mbit" {
				t.Error(terms)
			}
		})
	}
}

func TestFilteredOver(t *testing.T) {
	var f Filtered
	f.Over(400*time.Millisecond, 500*time.Millisecond, 50_000)
	if f.Got != 1_000_000 || f.Surely != 800_000 {
		t.Errorf("%+v", f)
	}
}
