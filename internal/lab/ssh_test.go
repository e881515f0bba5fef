package lab

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/report"
	"github.com/weir-net/weir/internal/testutil"
)

// metric finds one, or fails the test.
func metric(t *testing.T, r report.Result, arm, name string) report.Metric {
	t.Helper()
	for _, a := range r.Arms {
		if a.Name == arm {
			if m, ok := a.Metrics[name]; ok && m.N > 0 {
				return m
			}
		}
	}
	t.Fatalf("no %s in arm %s of %+v", name, arm, r.Arms)
	return report.Metric{}
}

func logTable(t *testing.T, r report.Result) {
	t.Helper()
	if err := report.Table(t.Output(), r, report.Style{Width: 100}); err != nil {
		t.Error(err)
	}
}

// TestSSHLab runs the lab on real queues. It is run for the lab's own sake: the
// bounds here only tell arms apart, on a busy machine too.
func TestSSHLab(t *testing.T) {
	testutil.Needs(t, "htb qdisc", "tbf qdisc")
	controller := newRawController(testutil.Cgroup2(t))
	var steps []string
	r, err := Run(context.Background(), "ssh", Options{
		Controller: controller, Repetitions: 2, Version: "v0", Command: "weir lab run ssh",
		Progress: func(s string) { steps = append(steps, s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	logTable(t, r)
	if len(steps) != 6 || steps[4] != "repetition 2 of 2: full" || controller.applied != 2 {
		t.Errorf("%d policies applied in %q", controller.applied, steps)
	}
	for _, arm := range []string{"alone", "full", "prioritised"} {
		for _, name := range []string{"copy_seconds", "rival_mbit", "keystroke_ms", "keystroke_p99_ms"} {
			if m := metric(t, r, arm, name); m.N != 2 || m.Min > m.Median || m.Median > m.Max {
				t.Errorf("%s %s: %+v", arm, name, m)
			}
		}
	}
	// This one does not depend on how busy the machine is.
	if m := metric(t, r, "prioritised", "rival_while_waiting_mbit"); m.N != 2 || m.Median > 1+rawFloor/1e6 {
		t.Errorf("rival while packets of the copy wait: %+v", m)
	}
	// The copy is 1.4 s of a 100 Mbit/s line, whatever else is wrong.
	if m := metric(t, r, "alone", "copy_seconds"); m.Min < copySeconds*0.97 {
		t.Errorf("faster than the line: %+v", m)
	}
	if m := metric(t, r, "alone", "rival_mbit"); m.Max != 0 {
		t.Errorf("a rival in arm alone: %+v", m)
	}
	full, prioritised := metric(t, r, "full", "rival_mbit"), metric(t, r, "prioritised", "rival_mbit")
	if full.Median < 25 || full.Median > 75 || prioritised.Median > 15 {
		t.Errorf("rival on a full line %.1f Mbit/s, beside priority %.1f", full.Median, prioritised.Median)
	}
	// 64 KiB at 100 Mbit/s are 5.2 ms of queue, which every keystroke meets.
	if m := metric(t, r, "full", "keystroke_ms"); m.Median < 2 {
		t.Errorf("the line was not full: a keystroke took %.2f ms", m.Median)
	}
	if x := r.Ratios["full_over_alone"]; x.Value < 1.4 || x.Low > x.Value || x.High < x.Value {
		t.Errorf("full_over_alone %+v", x)
	}
	if x := r.Ratios["prioritised_over_alone"]; x.Value > 1.25 {
		t.Errorf("prioritised_over_alone %+v", x)
	}
	if len(r.Claims) != 3 || len(r.Series) != 10 || r.Environment.Rung != "raw htb" || r.Kernel == "" {
		t.Errorf("%d claims, %d series, %+v", len(r.Claims), len(r.Series), r.Environment)
	}
}

// TestSSHLabFindsUnorderedQueue: classes that take turns are no strict order, and
// the lab must say so.
func TestSSHLabFindsUnorderedQueue(t *testing.T) {
	testutil.Needs(t, "htb qdisc", "tbf qdisc")
	controller := newRawController(testutil.Cgroup2(t))
	controller.turns = true
	r, err := Run(context.Background(), "ssh", Options{Controller: controller, Repetitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	logTable(t, r)
	if m := metric(t, r, "prioritised", "rival_while_waiting_mbit"); m.Median < 20 {
		t.Errorf("rival while packets of the copy wait: %+v", m)
	}
	// On a busy machine nothing may be provable, but that is not kept either.
	if got := verdicts(r.Claims[1:]); strings.Contains(got, "kept") {
		t.Errorf("%s: %+v", got, r.Claims)
	}
}

func TestPlainLine(t *testing.T) {
	for rate, want := range map[uint64]float64{100e6: 64 << 10, 1e9: 207_243, 5e6: 14_654} {
		if got := plainLine(rate).Queue; math.Abs(float64(got)-want) > 1 {
			t.Errorf("%d bit/s: %d bytes, want %.0f", rate, got, want)
		}
	}
}
