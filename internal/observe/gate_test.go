package observe

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/testutil"
)

// Programs that may not cost anything run for a part of the time only, and what they see then stands for the rest: each
// packet that is sent is found, and takes as long as for programs that run all the time.
func TestGate(t *testing.T) {
	testutil.Needs(t, "BTF")
	top := testutil.Cgroup2(t)
	testutil.Netns(t)
	startSink(t, top, "127.0.0.1:7007")
	s := newSource(t)
	id := cgroupID(t, top)
	flood := func(m *Meter, span time.Duration) (times cost.Times, packets, sent float64) {
		s.sent = map[string]int{}
		r := during(t, m, func() { s.send(span, "127.0.0.1:7007") })
		times, n := by(r, func(row cost.Row) bool { return row.Owner == cost.Owner{Kind: cost.Cgroup, ID: id} })
		return times, float64(n), float64(s.sent["127.0.0.1:7007"])
	}

	all, packetsOfAll, _ := flood(startMeter(t, top), time.Second)
	m, err := startWithin(Options{Cgroup: top}, 1e-9, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	part, packets, sent := flood(m, 4*time.Second)
	if m.gate.part != least {
		t.Errorf("the programs run for %g of the time", m.gate.part)
	}
	near(t, "packets", packets, sent, 0.25)
	// A packet of these weighs twenty. In parts of 10 ms they take a fifth longer, since what has just been attached is
	// in no cache yet.
	near(t, "ns of net_rx a packet", float64(part[cost.RX])/packets, float64(all[cost.RX])/packetsOfAll, 0.6)
}

// What is called while the gate is closed does not wait for ever.
func TestGateClosed(t *testing.T) {
	m := startMeter(t, testutil.Cgroup2(t))
	if err := m.gate.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Read(); !errors.Is(err, errClosed) {
		t.Errorf("a reading of a meter that is closed: %v", err)
	}
	m.gate = nil
}
