package lab

import (
	"context"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// TestCostLab runs the lab for a moment: that it measures, not what; see TestSSHLab for its bounds.
func TestCostLab(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2", "BTF")
	s, err := newSession(experimentOf(t, "cpu-cost"), Options{Controller: newRawController(testutil.Cgroup2(t)), Repetitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	l := &costLab{session: s, looping: 300 * time.Millisecond, turns: traffic.Turns{Rounds: 10, Slice: 3 * time.Millisecond}}
	before := affinity(t)
	err = l.run(context.Background())
	if closed := s.close(); closed != nil {
		t.Error(closed)
	}
	if err != nil {
		t.Fatal(err)
	}
	if after := affinity(t); after != before {
		t.Errorf("the lab may use %d CPUs afterwards, %d before", after, before)
	}
	r := l.result
	logTable(t, r)
	for _, arm := range costInfo.Arms[:6] {
		effective, apparent := metric(t, r, arm, "effective_percent"), metric(t, r, arm, "apparent_percent")
		if effective.Median <= 0 || effective.Max > 100.1 || apparent.Median <= 0 {
			t.Errorf("%s: effective %+v, apparent %+v", arm, effective, apparent)
		}
		packets := metric(t, r, arm, "packets_per_second").Median
		if idle := arm == "idle"; idle != (packets < 1000) {
			t.Errorf("%s: %.0f packets a second", arm, packets)
		}
		if arm == "meter_off" {
			continue
		}
		if sums := metric(t, r, arm, "sums_percent"); sums.Min < 98 || sums.Max > 102 {
			t.Errorf("%s: the matrix sums up to %.2f %%", arm, sums.Median)
		}
		if arm == "meter_on" {
			continue
		}
		if metered := metric(t, r, arm, "stolen_percent_meter").Median; arm != "idle" && metered <= 0 || metered > 100 {
			t.Errorf("%s: interrupts took %.2f %%", arm, metered)
		}
	}
	for _, arm := range costInfo.Arms[6:8] {
		if m := metric(t, r, arm, transactions); m.Median < 500 || m.N != 3 {
			t.Errorf("%s: %+v", arm, m)
		}
	}
	for _, arm := range []string{"limit_none", "limit_htb"} {
		packets, each := metric(t, r, arm, "packets_per_second"), metric(t, r, arm, "stolen_ns_per_packet")
		if packets.Median < limitedPackets/4 || packets.Max > 3*limitedPackets || each.Median < 0 || each.N != 1 {
			t.Errorf("%s: %+v packets a second, each takes %+v", arm, packets, each)
		}
	}
	if len(r.Claims) != 6 || len(r.Published) != 4 {
		t.Errorf("%d claims, %d published figures", len(r.Claims), len(r.Published))
	}
}

// affinity is on how many CPUs this process may run.
func affinity(t *testing.T) int {
	t.Helper()
	cpus, err := threadAffinities()
	if err != nil {
		t.Fatal(err)
	}
	return cpus
}

func TestCostLabRefuses(t *testing.T) {
	testutil.Needs(t, "root")
	_, err := Run(context.Background(), "cpu-cost", Options{Controller: newRawController(""), Scheduler: policy.HTB})
	if err == nil {
		t.Error("a queue is refused")
	}
}
