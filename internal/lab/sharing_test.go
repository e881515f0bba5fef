package lab

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// sharingOn is a lab whose workloads have no processes.
func sharingOn(s *session) *sharingLab {
	l := &sharingLab{session: s, beat: time.Second}
	l.line.Device = "line"
	for i, w := range sharers {
		l.flows[i] = &flow{name: w.name, cgroup: "/a-1.slice/" + w.name}
	}
	return l
}

// quickSharing is a lab with scenes as short as TCP allows.
func quickSharing(t *testing.T) (*sharingLab, *rawController) {
	t.Helper()
	testutil.Needs(t, "htb qdisc", "sock_create")
	controller := newRawController(testutil.Cgroup2(t))
	s, err := newSession(experimentOf(t, "sharing"), Options{Controller: controller, Repetitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return &sharingLab{session: s, beat: 250 * time.Millisecond}, controller
}

// TestSharingLab runs the lab on a raw HTB; see TestSSHLab for its bounds.
func TestSharingLab(t *testing.T) {
	l, controller := quickSharing(t)
	if err := l.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := l.result
	logTable(t, r)
	if controller.applied != 2 || r.Environment.Rung != "raw htb" {
		t.Errorf("%d policies applied, rung %q", controller.applied, r.Environment.Rung)
	}
	for who, w := range sharers {
		if m := metric(t, r, "weir", w.name+whileAllSend); m.Median < 0.8*l.promised(who) || m.Median > 1.2*l.promised(who) {
			t.Errorf("%s: %.1f of %.0f Mbit/s", w.name, m.Median, l.promised(who))
		}
	}
	if few, many := metric(t, r, "none", "large"+whileAllSend), metric(t, r, "none", "small"+whileAllSend); few.Median > many.Median/2 {
		t.Errorf("without mins one flow has %.1f Mbit/s, eight have %.1f", few.Median, many.Median)
	}
	for _, arm := range sharingInfo.Arms {
		for _, scene := range script {
			if m := metric(t, r, arm, scene.metric); m.Median < 60 || m.Median > 120 {
				t.Errorf("%s, %s: %.0f %% of the line", arm, scene.words, m.Median)
			}
		}
		if m := metric(t, r, arm, "flood_offered_mbit"); m.Median < l.mbit() {
			t.Errorf("%s: the flood offered %+v", arm, m)
		}
	}
	for _, name := range []string{"middle_beside_flood_mbit", "large_beside_flood_mbit"} {
		if with, without := metric(t, r, "weir", name), metric(t, r, "none", name); with.Median < 1.2*without.Median {
			t.Errorf("%s: %.1f Mbit/s with a min, %.1f without", name, with.Median, without.Median)
		}
	}
	if len(r.Claims) != 5 || len(r.Ratios) != 6 || len(r.Series) != 6 || r.Series[0].Plot != sharingPlots["none"] {
		t.Errorf("%d claims, %d ratios, %d series", len(r.Claims), len(r.Ratios), len(r.Series))
	}
}

// TestCountersOfSharing holds what TCP counts of each workload against what the
// device counts of all.
func TestCountersOfSharing(t *testing.T) {
	l, _ := quickSharing(t)
	if err := l.build(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := l.Controller.Apply(ctx, l.line.Host.Netns(), []byte(l.policy("none"))); err != nil {
		t.Fatal(err)
	}
	p, err := l.play(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string][]traffic.Trace{"fine": p.fine, "drawn": p.drawn} {
		sum, device := 0.0, of[everybody].Mbit(p.began[0], p.began[len(script)])
		for who := range sharers {
			sum += of[who].Mbit(p.began[0], p.began[len(script)])
		}
		// Between two readings both are estimates, and the device's is earlier.
		if device == 0 || math.Abs(sum-device) > 0.03*device {
			t.Errorf("%s: TCP has %.2f Mbit/s, the device %.2f", name, sum, device)
		}
	}
	// Nobody sends who has not joined or who has left.
	for _, c := range []struct{ who, from, to int }{{middle, 0, 1}, {large, 0, 2}, {middle, 4, 5}} {
		if mbit := p.fine[c.who].Mbit(p.began[c.from].Add(l.beat/5), p.began[c.to]); mbit > 0.05*l.mbit() {
			t.Errorf("%s has %.1f Mbit/s in scenes %d to %d", sharers[c.who].name, mbit, c.from, c.to)
		}
	}
}

// The mins that the lab promises are those that the parser of policies reads, and
// without them nothing else is different.
func TestSharingPolicy(t *testing.T) {
	s, err := newSession(experimentOf(t, "sharing"), Options{Controller: newRawController(""), Rate: MinRate})
	if err != nil {
		t.Fatal(err)
	}
	l := sharingOn(s)
	p, err := policy.Parse("sharing.yaml", []byte(l.policy("weir")))
	if err != nil {
		t.Fatal(err)
	}
	total := policy.Rate(0)
	for _, w := range p.Workloads {
		for who := range sharers {
			if sharers[who].name == w.Name && float64(w.Contract.Egress.Min["line"]) != l.promised(who)*1e6 {
				t.Errorf("%s: %+v, want %g Mbit/s", w.Name, w.Contract.Egress, l.promised(who))
			}
		}
		total += w.Contract.Egress.Min["line"]
	}
	if total != MinRate {
		t.Errorf("%s of %s are promised", total, MinRate)
	}
	none, err := policy.Parse("none.yaml", []byte(l.policy("none")))
	if err != nil {
		t.Fatal(err)
	}
	if len(none.Workloads) != 0 || fmt.Sprint(none.Links[0].Rate, none.Links[0].Scheduler) != fmt.Sprint(p.Links[0].Rate, p.Links[0].Scheduler) {
		t.Errorf("%+v, and with mins %+v", none, p.Links)
	}
}

// TestSharingLabNeedsHTB: no other scheduler keeps mins.
func TestSharingLabNeedsHTB(t *testing.T) {
	_, err := Run(context.Background(), "sharing", Options{Controller: newRawController(""), Scheduler: policy.Prio})
	if err == nil || !strings.Contains(err.Error(), "run lab sharing: scheduler prio: ") {
		t.Errorf("got %v", err)
	}
}
