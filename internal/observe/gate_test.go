package observe

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/testutil"
)

// Programs that may not cost anything run for a part of the time only, and what they see then stands for the rest:
// each packet that is sent is found, and the samples, which go on, say the same of the time.
func TestGate(t *testing.T) {
	testutil.Needs(t, "BTF")
	top := testutil.Cgroup2(t)
	testutil.Netns(t)
	startSink(t, top, "127.0.0.1:7007")
	m, err := startWithin(Options{Cgroup: top, Hertz: 997}, 1e-9, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	s := newSource(t)
	r := during(t, m, func() { s.send(5*time.Second, "127.0.0.1:7007") })
	if m.gate.part != least {
		t.Errorf("the programs run for %g of the time", m.gate.part)
	}
	id := cgroupID(t, top)
	times, packets := by(r, func(row cost.Row) bool { return row.Owner == cost.Owner{Kind: cost.Cgroup, ID: id} })
	near(t, "packets", float64(packets), float64(s.sent["127.0.0.1:7007"]), 0.2)
	var sampled uint64
	for _, c := range r.CPUs {
		sampled += c.Sampled[cost.RX]
	}
	near(t, "seconds in net_rx", times[cost.RX].Seconds(), float64(sampled)/997, 0.3)
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
