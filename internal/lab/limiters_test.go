package lab

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// TestLimitersLab runs the lab on real queues, an HTB in Weir's places; see
// TestSSHLab for its bounds.
func TestLimitersLab(t *testing.T) {
	testutil.Needs(t, "htb qdisc", "ifb link", "clsact qdisc", "mirred action")
	controller := newRawController(testutil.Cgroup2(t))
	const rate = 50e6
	r, err := Run(context.Background(), "limiters", Options{Controller: controller, Repetitions: 1, Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	logTable(t, r)
	if controller.applied != len(weirs)*(len(loads)+len(lines{})+2) { // small packets, by turns, 32 flows, and other bulk
		t.Errorf("%d policies applied", controller.applied)
	}
	var arms []string
	for _, a := range r.Arms {
		arms = append(arms, a.Name)
	}
	if got, want := strings.Join(arms, " "), strings.Join(limitersInfo.Arms, " "); got != want {
		t.Errorf("arms %s, want %s", got, want)
	}
	for _, a := range r.Arms[1:] {
		arm := a.Name
		if a.Metrics["pps"].N == 0 {
			continue // this kernel lacks it
		}
		for _, suffix := range []string{"", "_1", "_ecn"} {
			// A busy machine may read late.
			if m := metric(t, r, arm, "mbit"+suffix); m.Median > 1.05*rate/1e6 || m.Median < rate/1e6/2 {
				t.Errorf("%s%s: %.1f Mbit/s below a limit of %g", arm, suffix, m.Median, rate/1e6)
			}
			metric(t, r, arm, "retransmits"+suffix)
			if m := metric(t, r, arm, "marks"+suffix); suffix != "_ecn" && m.Median > 0 {
				t.Errorf("%s%s: %g packets are marked for who does not understand it", arm, suffix, m.Median)
			}
			if m := metric(t, r, arm, "rr_p99_ms"+suffix); m.Median <= 0 || m.N != metric(t, r, arm, "rr_steal_ms"+suffix).N {
				t.Errorf("%s%s: requests took %+v", arm, suffix, m)
			}
		}
		// A queue or bucket may save up some milliseconds of the window.
		if m := metric(t, r, arm, "used_below"); m.Median > 110 {
			t.Errorf("%s: small packets used %.0f %% of their limit", arm, m.Median)
		}
		if m := metric(t, r, arm, "offered_below"); m.Median <= 0 {
			t.Errorf("%s: %+v was offered", arm, m)
		}
		for _, name := range []string{"pps", "pps_by_turns", "pps_by_turns_none", "pps_near", "drops", "drops_near", "drops_below", "softirq_ns_per_packet", "cpu_ns_per_packet", "rr_idle_p99_ms", "rr_alone_p99_ms"} {
			metric(t, r, arm, name)
		}
	}
	if tcx, err := feature.Has("tcx"); err != nil {
		t.Error(err)
	} else {
		for _, o := range onlookers {
			if m, measured := r.Arms[0].Metrics["pps_by_turns"+o.through]; measured != tcx {
				t.Errorf("through a program that holds nothing: %+v, tcx: %v", m, tcx)
			}
		}
	}
	if m := metric(t, r, "none", "mbit"); m.Median < 2*rate/1e6 {
		t.Errorf("without a limit %.1f Mbit/s", m.Median)
	}
	if m := metric(t, r, "none", "cpu_ns_per_packet"); m.Median < 50 || m.Median > 1e6 {
		t.Errorf("a packet takes %+v", m)
	}
	if len(r.Claims) != 5 || len(r.Series) < 4+3*3 {
		t.Errorf("%d claims, %d series", len(r.Claims), len(r.Series))
	}
}

// TestLimitersLabTakesNoScheduler: a queue in order would be part of what is
// measured.
func TestLimitersLabTakesNoScheduler(t *testing.T) {
	_, err := Run(context.Background(), "limiters", Options{Controller: newRawController(""), Scheduler: policy.HTB})
	if err == nil || !strings.Contains(err.Error(), "run lab limiters: scheduler htb: ") {
		t.Errorf("got %v", err)
	}
}

// TestComparisons: what is judged is measured more often, where there is more than a quick look.
func TestComparisons(t *testing.T) {
	for _, c := range []struct {
		arm               string
		repetitions, want int
	}{{"weir", 1, 1}, {"weir", 6, requestTurns}, {"edt", 2, requestTurns}, {"htb", 6, 1}, {"none", 6, 1}} {
		l := &limitersLab{limiter: limiter{session: &session{Options: Options{Repetitions: c.repetitions}}}}
		if got := l.comparisons(c.arm); got != c.want {
			t.Errorf("%s, %d repetitions: %d turns, want %d", c.arm, c.repetitions, got, c.want)
		}
	}
}

// TestBegins: each line begins as often with the limit as without it.
func TestBegins(t *testing.T) {
	var with, without [2]int
	for i := range anew * len(lines{}) {
		if limited := i % len(lines{}); begins(i) == limited {
			with[limited]++
		} else {
			without[limited]++
		}
	}
	if half := anew / 2; with != [2]int{half, half} || without != with {
		t.Errorf("with the limit %d times, without it %d", with, without)
	}
}

// TestLimitersPolicy gives the limits of a lab to the parser of policies.
func TestLimitersPolicy(t *testing.T) {
	s, err := newSession(experimentOf(t, "limiters"), Options{Controller: newRawController("")})
	if err != nil {
		t.Fatal(err)
	}
	l := &limitersLab{limiter: limiter{session: s, match: `cgroup: "/a-1.slice/weir-lab-1"`}}
	l.line.Device = "line"
	for _, c := range []struct {
		offered float64 // packets/s
		want    []policy.Rate
	}{
		{1e6, []policy.Rate{8480e6, 1060e6, 212e6}},
		{1, []policy.Rate{1e6, 1e6, 1e6}},
		{1e9, []policy.Rate{34_359e6, 34_359e6, 34_359e6}}, // what police takes
	} {
		l.limit(c.offered)
		for i, limit := range l.limits {
			if limit != c.want[i] {
				t.Errorf("%g packets/s: at most %s, want %s", c.offered, limit, c.want[i])
			}
			for arm, how := range weirs {
				p, err := policy.Parse("limiters.yaml", []byte(l.policy(arm, limit)))
				if err != nil {
					t.Errorf("%v\n%s", err, l.policy(arm, limit))
					continue
				}
				if e := p.Workloads[0].Contract.Egress; p.Links[0].Scheduler != how.scheduler || e.Max != limit || e.Method != how.method {
					t.Errorf("%s: %+v", arm, p)
				}
			}
		}
	}
}
