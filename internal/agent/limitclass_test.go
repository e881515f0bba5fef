package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// withoutAtomics applies a policy as on a kernel that lacks what a limit takes of BPF.
func (b *bench) withoutAtomics(t *testing.T, text string) {
	t.Helper()
	b.lackAtomics(t)
	b.apply(t, text)
	if b.room().PaceAttached() { // that had a module loaded, so the kernel was asked anew
		b.lackAtomics(t)
		b.apply(t, text)
	}
}

// lackAtomics has the bench's agent take this kernel for one without atomics, as long as
// no module is loaded.
func (b *bench) lackAtomics(t *testing.T) {
	t.Helper()
	b.lack(t, func(f *plan.Features) { f.Atomics = false })
}

// lack has the agent find a kernel without something.
func (b *bench) lack(t *testing.T, hide func(*plan.Features)) {
	t.Helper()
	f := b.features(context.Background())
	hide(&f)
	text, err := json.Marshal(probed{bootID(), loadedModules(), b.Version, f})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.Scope.Run, "features.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// classed is a policy that has htb hold a cgroup to a limit, in Mbit/s.
func (b *bench) classed(rate int, group string, max int) string {
	return b.policyAt(rate, fmt.Sprintf("  held: {match: [{cgroup: %s}], egress: {max: %dMbit, method: htb}}\n", group, max))
}

// wireRate is what leaves for a time of a workload that has a class of its own, in Mbit/s.
func (b *bench) wireRate(name string) func(t *testing.T, over time.Duration) float64 {
	return func(t *testing.T, over time.Duration) float64 { return b.leaves(t, over)[name] }
}

// TestLimitByHTB holds real iperf3 streams in a class: what is received is the limit.
func TestLimitByHTB(t *testing.T) {
	testutil.Proves(t, testutil.LimitQueued)
	testutil.By(t, string(policy.MethodHTB))
	testutil.Needs(t, "htb qdisc")
	limits := []int{10, 100} // Mbit/s
	if testing.Short() {
		limits = []int{10} // an emulated CPU may not fill more
	}
	for name, c := range map[string]struct {
		args   []string
		onWire float64
	}{
		"one flow": {nil, segmentWire},
		"32 flows": {[]string{"--parallel", "32"}, segmentWire},
		"UDP":      {[]string{"--udp", "--length", "1448"}, 1490.0 / 1448},
	} {
		for _, limit := range limits {
			t.Run(fmt.Sprintf("%d Mbit, %s", limit, name), func(t *testing.T) {
				if limit == 10 {
					t.Parallel() // it mostly waits
				}
				b := newBench(t)
				dir, group := b.makeCgroup(t, "held")
				arrives := arrivals(t, b.there, 5201)
				b.iperfServer(t, 5201)
				for _, rate := range []int{limit, limit, limit, limit / 5} { // a busy machine may not fill it, or count late
					args := c.args
					if name == "UDP" {
						args = append(args, "--bitrate", fmt.Sprintf("%dM", 3*rate))
					}
					if b.fillsLimit(t, dir, group, rate, c.onWire, args, arrives) {
						return
					}
				}
				t.Errorf("never what the limit is")
			})
		}
	}
}

// fillsLimit has iperf3 send into a class with a limit, in Mbit/s. That more than it leaves
// is an error; it reports whether it was all of it, as HTB counts and as the receiver does, in 5 s too.
func (b *bench) fillsLimit(t *testing.T, dir, group string, limit int, onWire float64, args []string, arrives func(time.Duration) []float64) bool {
	t.Helper()
	text := b.classed(10*limit, group, limit)
	b.apply(t, text)
	over := 4 * time.Second
	if limit == 10 { // of which a packet of 64 KiB and what HTB has in store are 1.5 %
		over *= 2
	}
	var out strings.Builder
	cmd := start(t, b.here, dir, &out, "iperf3", append([]string{"--client", b.far.IPv4.Addr().String(),
		"--port", "5201", "--time", fmt.Sprint(1 + over.Seconds()), "--omit", "2", "--json"}, args...)...)
	untilBusy(t, b.wireRate("held"))
	time.Sleep(time.Second)
	five := make(chan float64, 1)
	go func() { five <- arrives(min(over, 5*time.Second))[0] }()
	left := b.leaves(t, over)["held"]
	s := status(t, b.Agent)
	got := []float64{<-five}
	wait(t, cmd, &out)
	got = append(got, delivered(t, &out)*onWire)
	t.Logf("%.3f Mbit/s left, %.3f were received; %s", left, got, s.Promises[0].Evidence)
	packet := 0.0
	if limit < 10 { // where one is more than a hundredth
		packet = 8 * 64 << 10 / 1e6 / 4
	}
	most, least := 1.01*float64(limit)+packet, 0.98*float64(limit)-packet
	if left > most {
		t.Errorf("%.3f Mbit/s left below a limit of %d", left, limit)
	}
	if j := s.Promises[0]; !s.OK || j.Promise != plan.PromiseEgress || j.Verdict != plan.Kept || j.Max.String() != fmt.Sprintf("%dMbit", limit) || j.Link != b.link.Name {
		t.Errorf("status: %+v", s.Promises)
	}
	if d := b.apply(t, text); len(d) != 0 {
		t.Errorf("a second apply changes %v", d)
	}
	return min(left, slices.Min(got)) >= least && slices.Max(got) <= most // who is late reads what came before
}

// TestLimitFallsToHTB: where the kernel can not pace, auto takes htb, and the programs of
// limits are not loaded.
func TestLimitFallsToHTB(t *testing.T) {
	testutil.Proves(t, testutil.LimitQueued)
	testutil.By(t, string(policy.MethodHTB))
	testutil.Needs(t, "htb qdisc")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.iperfServer(t, 5201)
	text := func(max int) string {
		return b.policyText(fmt.Sprintf("  held: {match: [{cgroup: %s}], egress: {max: %dMbit}}\n", group, max))
	}
	b.withoutAtomics(t, text(5))
	start(t, b.here, dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5201", "--time", "90", "--parallel", "4")
	untilBusy(t, b.wireRate("held"))
	full := false
	for _, limit := range []int{5, 5, 5, 2, 1} { // a busy machine may send less, and never more
		b.apply(t, text(limit))
		time.Sleep(time.Second)
		const packet = 8 * 64 << 10 / 1e6 / 4 // Mbit/s
		left := b.leaves(t, 4*time.Second)["held"]
		if left > 1.02*float64(limit)+packet {
			t.Errorf("%.3f Mbit/s left below a limit of %d", left, limit)
		}
		if full = left >= 0.98*float64(limit)-packet; full {
			break
		}
	}
	if !full {
		t.Error("less than the limit left")
	}
	s := status(t, b.Agent)
	why := "the best here: BPF programs of this kernel can not count a limit together (no atomic fetch); "
	if b.features(t.Context()).Qdiscs[string(policy.FQ)] {
		why += fmt.Sprintf("htb holds link %q to 100Mbit, and keeps no packet until its time of departure", b.link.Name)
	} else {
		why += "kernel has no fq qdisc, which edt waits in"
	}
	want := LimitStatus{"held", plan.EveryLink, plan.PromiseEgress, "htb", why, nil}
	if len(s.Limits) == 0 {
		t.Fatalf("status: %+v", s)
	}
	got := s.Limits[0]
	if got.Lacks = nil; !s.OK || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("status: %+v, want %+v", got, want)
	}
	if held, err := b.held(record(t, b.Agent)); err != nil || len(held) != 0 {
		t.Errorf("budgets: %v, %v", held, err)
	}
	if b.room().PaceAttached() {
		t.Error("connections are paced")
	}
}

// TestLimitsBesideOthers: of a full line, a limited workload has its limit where its
// priority is the higher one, nothing where it is the lower, and its share in either
// case; all else is for the others.
func TestLimitsBesideOthers(t *testing.T) {
	testutil.Needs(t, "htb qdisc")
	b := newBench(t)
	heldDir, held := b.makeCgroup(t, "held")
	otherDir, other := b.makeCgroup(t, "other")
	b.iperfServer(t, 5201)
	b.iperfServer(t, 5202)
	text := func(of string, priority int) string {
		return b.policyAt(50, fmt.Sprintf("  held: {match: [{cgroup: %s}], %s}\n  other: {match: [{cgroup: %s}], priority: %d}\n", held, of, other, priority))
	}
	first := text("priority: 12, egress: {max: 20Mbit, method: htb}", 2)
	b.apply(t, first)
	b.streams(t, heldDir, 5201, 3, 120)
	untilBusy(t, b.wireRate("held"))
	b.streams(t, otherDir, 5202, 3, 120)
	untilBusy(t, b.wireRate("class 1"))
	starved := false
	for _, c := range []struct {
		name, text string
		held       float64 // of 50 Mbit/s
		class      string  // of the others
	}{
		{"higher", first, 20, "class 1"},
		{"lower", text("priority: 2, egress: {max: 20Mbit, method: htb}", 12), 0, "class 6"},
		{"lower, with a share", text("priority: 2, egress: {min: 10Mbit, max: 20Mbit, method: htb}", 12), 10, "class 6"},
		{"higher, with a share", text("priority: 12, egress: {min: 10Mbit, max: 20Mbit, method: htb}", 2), 20, "class 1"},
		{"another limit", text("priority: 12, egress: {max: 30Mbit, method: htb}", 2), 30, "class 1"},
		{"a lower limit", text("priority: 12, egress: {max: 2Mbit, method: htb}", 2), 2, "class 1"},
	} {
		b.apply(t, c.text)
		if starved { // goes on when TCP's timers say so, which went further apart while it had nothing
			untilBusy(t, b.wireRate("held"))
		} else {
			time.Sleep(time.Second)
		}
		starved = c.held == 0
		rates := b.onFull(t, 50, 3*time.Second)
		const packet = 8 * 64 << 10 / 1e6 / 3 // Mbit/s
		if got := rates["held"]; got < 0.98*c.held-packet || got > 1.02*c.held+packet {
			t.Errorf("%s: the limited one has %.2f of %.0f Mbit/s", c.name, got, c.held)
		}
		if got, rest := rates[c.class], 50-c.held; got < 0.96*rest || got > 1.02*rest {
			t.Errorf("%s: the other has %.2f of %.0f Mbit/s", c.name, got, rest)
		}
		if s := status(t, b.Agent); !s.OK {
			t.Errorf("%s: %s %+v", c.name, s.Verdict, s.Promises)
		}
	}
}

// onFull is what leaves a line for a time in which it is full: a busy machine may not
// always fill it.
func (b *bench) onFull(t *testing.T, line float64, over time.Duration) (rates map[string]float64) {
	t.Helper()
	for range 4 {
		rates = b.leaves(t, over)
		sum := 0.0
		for _, rate := range rates {
			sum += rate
		}
		t.Logf("%.2f Mbit/s: %v", sum, rates)
		if sum >= 0.99*line {
			return rates
		}
	}
	t.Fatalf("the line of %.0f Mbit/s is not full", line)
	return nil
}

// TestLimitChangesRung has one limit go from pace to a class and back, under load: at no
// time it is held by neither.
func TestLimitChangesRung(t *testing.T) {
	testutil.Needs(t, "htb qdisc", "BPF atomics", "BPF tail calls")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.iperfServer(t, 5201)
	text := func(method string) string {
		return b.policyText(fmt.Sprintf("  held: {match: [{cgroup: %s}], priority: 3, egress: {max: 20Mbit, method: %s}}\n", group, method))
	}
	b.apply(t, text("pace"))
	b.streams(t, dir, 5201, 4, 120)
	untilBusy(t, b.rate)
	for _, method := range []string{"htb", "pace", "htb"} {
		rate := b.rateOf(t, func() {
			b.apply(t, text(method))
			time.Sleep(2 * time.Second)
		})
		t.Logf("to %s: %.2f Mbit/s", method, rate)
		if rate > 20*1.05 || rate < 20*0.8 {
			t.Errorf("to %s: %.2f Mbit/s left below a limit of 20", method, rate)
		}
		s := status(t, b.Agent)
		if !s.OK || s.Limits[0].Rung != method || s.Limits[0].Why != "the policy asks for it" {
			t.Errorf("to %s: %+v", method, s)
		}
		if paced := b.room().PaceAttached(); paced != (method == "pace") {
			t.Errorf("to %s: paced: %v", method, paced)
		}
	}
	if out := b.here.Output("tc", "class", "show", "dev", b.link.Name); !regexp.MustCompile(`7e1f:3000 .* ceil 20Mbit`).MatchString(out) {
		t.Errorf("no class has the limit:\n%s", out)
	}
}

// TestLimitClassDrifts: a ceil that somebody else has changed is found, and mended.
func TestLimitClassDrifts(t *testing.T) {
	testutil.Proves(t, testutil.LimitQueued)
	testutil.By(t, string(policy.MethodHTB))
	testutil.Needs(t, "htb qdisc", "tc")
	b := newBench(t)
	_, group := b.makeCgroup(t, "held")
	b.apply(t, b.classed(100, group, 10))
	b.here.Output("tc", "class", "change", "dev", b.link.Name, "parent", "7e1f:1", "classid", "7e1f:3000", "htb", "rate", "1kbit", "ceil", "90mbit")
	if s := status(t, b.Agent); s.OK || s.Promises[0].Verdict != plan.Broken || !strings.Contains(s.Promises[0].Evidence, "7e1f:3000") {
		t.Errorf("with another ceil: %+v", s.Promises)
	}
	b.apply(t, b.classed(100, group, 10))
	if s := status(t, b.Agent); !s.OK {
		t.Errorf("mended: %+v", s)
	}
	err := b.inScope(func() error {
		shares, err := tc.Shares(b.link.Index)
		if err == nil && len(shares) != 1 {
			err = fmt.Errorf("%d classes of workloads", len(shares))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
