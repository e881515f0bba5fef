package lab

import (
	"context"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// quickMemory is a lab with fewer connections and less to say.
func quickMemory(t *testing.T) (*memoryLab, *rawController) {
	t.Helper()
	testutil.Needs(t, "sock_ops", "tbf qdisc")
	controller := newRawController(testutil.Cgroup2(t))
	s, err := newSession(experimentOf(t, "tcp-memory"), Options{Controller: controller, Repetitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return &memoryLab{
		session: s,
		loads: []stuffing{
			{suffix: "", connections: 20, max: 4 << 20, each: 2 << 20},
			{suffix: "_1000", connections: 100, max: 16 << 20, each: 512 << 10},
		},
		talk: talking{most: 3, least: 2, turns: traffic.Turns{Rounds: 4, Slice: 5 * time.Millisecond}},
	}, controller
}

// TestMemoryLab runs the lab with buffers that are capped when connections begin; see
// TestSSHLab for its bounds.
func TestMemoryLab(t *testing.T) {
	l, controller := quickMemory(t)
	if err := l.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := l.result
	logTable(t, r)
	if controller.applied < len(l.loads)+l.talk.least {
		t.Errorf("%d policies applied", controller.applied)
	}
	for _, s := range l.loads {
		if s.left != "" {
			t.Logf("%s", s.left)
			continue
		}
		without, with := metric(t, r, "unbounded", "tcp_memory_bytes"+s.suffix), metric(t, r, "bounded", "tcp_memory_bytes"+s.suffix)
		if without.Median < 2*float64(s.max) || with.Max > 1.1*float64(s.max) || with.Median == 0 {
			t.Errorf("%d connections hold %.1f MB, below a bound of %.1f MB %.1f", s.connections, without.Median/1e6, float64(s.max)/1e6, with.Max/1e6)
		}
		for _, arm := range []string{"unbounded", "bounded"} {
			if m := metric(t, r, arm, "connections"+s.suffix); m.Median != float64(s.connections) {
				t.Errorf("%s: %+v, want %d", arm, m, s.connections)
			}
			if m := metric(t, r, arm, "neighbour_mbit"+s.suffix); m.Median < 50 || m.Median > 105 {
				t.Errorf("%s: the neighbour has %.1f of 100 Mbit/s", arm, m.Median)
			}
			if m := metric(t, r, arm, "neighbour_rr_p99_ms"+s.suffix); m.Median <= 0 {
				t.Errorf("%s: %+v", arm, m)
			}
		}
	}
	for _, name := range []string{"neighbour_mbit", "neighbour_rr_ms", "neighbour_rr_p99_ms"} {
		metric(t, r, "alone", name)
	}
	for _, talker := range l.talk.arms {
		for _, name := range []string{transactions, transactions + "_all"} {
			if m := metric(t, r, talker.arm, name); m.Median < 500 || m.N < l.talk.least {
				t.Errorf("%s: %+v", talker.arm, m)
			}
		}
	}
	if len(r.Claims) != 11 || len(r.Series) != 2*len(l.loads)+len(l.talk.arms) || len(r.Ratios) == 0 {
		t.Errorf("%d claims, %d series, %d ratios", len(r.Claims), len(r.Series), len(r.Ratios))
	}
}

// TestMemoryLabTakesNoScheduler: nothing of it waits in a queue of Weir's.
func TestMemoryLabTakesNoScheduler(t *testing.T) {
	_, err := Run(context.Background(), "tcp-memory", Options{Controller: newRawController(""), Scheduler: policy.HTB})
	if err == nil {
		t.Error("it has one")
	}
}

// TestBoundPolicy gives the bounds of the lab to the parser of policies.
func TestBoundPolicy(t *testing.T) {
	all := []bounded{{"rr_on", "/a-1.slice/weir-lab-1", ample}, {"rr_granted", "/g", enough}, {"rr_watched", "/b", scarce}}
	for _, s := range stuffings() {
		all = append(all, bounded{"stuffed" + s.suffix, "/c" + s.suffix, s.bound()})
	}
	p, err := policy.Parse("memory.yaml", []byte(boundPolicy(all...)))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Workloads) != len(all) {
		t.Fatalf("%+v", p)
	}
	for _, w := range p.Workloads {
		m := w.Contract.TCPMemory
		if m.Soft == 0 || m.Max != 2*m.Soft {
			t.Errorf("%s: %+v", w.Name, m)
		}
	}
}
