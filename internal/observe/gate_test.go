package observe

import (
	"errors"
	"math"
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
	s.paced = 50 // else it would be chance how much of the CPU it has in the parts of the time that count
	id := cgroupID(t, top)
	// It goes on while a reading is taken: the last part of the time is one in which it sends.
	// One meter runs at a time: each sees what the programs of another take.
	flood := func(budget float64, span time.Duration) (perPacket, packets, sent, part float64) {
		m, err := startWithin(Options{Cgroup: top}, budget, cycle)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			part = m.gate.part
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}()
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
		return float64(times[cost.RX]) / float64(n), float64(n) / r.At.Seconds(), float64(s.sent["127.0.0.1:7007"]) / longer.Seconds(), 0
	}

	// What else the CPU does makes a packet take longer, never less: so the least of each counts, by turns, of so many that
	// both had it for themselves once. A wrong weight would be twentyfold.
	always, inParts := math.Inf(1), math.Inf(1)
	for range 6 {
		perPacket, _, _, part := flood(math.Inf(1), cycle)
		if part != 1 {
			t.Errorf("programs that may cost whatever they do run for %g of the time", part)
		}
		always = min(always, perPacket)
		perPacket, packets, sent, part := flood(1e-9, 4*cycle)
		if part != least {
			t.Errorf("programs that may not cost anything run for %g of the time", part)
		}
		near(t, "packets a second", packets, sent, 0.2)
		inParts = min(inParts, perPacket)
		t.Logf("ns of net_rx a packet: %.4g in parts of the time, %.4g in all of it", inParts, always)
		if math.Abs(inParts-always) < 0.3*always {
			return
		}
	}
	t.Errorf("ns of net_rx a packet: %.4g in parts of the time, want %.4g ± 30 %%", inParts, always)
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
