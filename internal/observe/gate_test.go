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
	// It goes on while a reading is taken: the last part of the time is one in which it sends.
	flood := func(m *Meter, span time.Duration) (perPacket, packets, sent float64) {
		s.sent = map[string]int{}
		longer := span + 2*cycle
		ended := make(chan struct{})
		go func() {
			s.send(longer, "127.0.0.1:7007")
			close(ended)
		}()
		r := during(t, m, func() { time.Sleep(span) })
		<-ended
		times, n := by(r, func(row cost.Row) bool { return row.Owner == cost.Owner{Kind: cost.Cgroup, ID: id} })
		return float64(times[cost.RX]) / float64(n), float64(n) / r.At.Seconds(), float64(s.sent["127.0.0.1:7007"]) / longer.Seconds()
	}

	always, _, _ := flood(startMeter(t, top), time.Second)
	m, err := startWithin(Options{Cgroup: top}, 1e-9, cycle)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	inParts, packets, sent := flood(m, 4*cycle)
	if m.gate.part != least {
		t.Errorf("the programs run for %g of the time", m.gate.part)
	}
	near(t, "packets a second", packets, sent, 0.2)
	// How fast the CPU is differs from second to second; a wrong weight would be twentyfold.
	near(t, "ns of net_rx a packet", inParts, always, 0.5)
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
