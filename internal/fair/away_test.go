package fair

import (
	"fmt"
	"math/rand"
	"testing"
	"time"
)

// TestCPUAway has one CPU of two, or both, do nothing for some milliseconds now and then, as those of a virtual machine do.
// TCP makes good half of the time between two of a flow's packets, and all flows that were late go on at the same time: so
// in 100 ms there may be a packet of each more than its share is, and no more.
func TestCPUAway(t *testing.T) {
	for _, c := range []struct {
		limit uint64
		n     int
	}{{hundredMbit, 8}, {hundredMbit, 32}, {hundredMbit, 128}, {10 * hundredMbit, 32}} {
		for _, away := range []time.Duration{0, 2 * time.Millisecond, 7 * time.Millisecond, 14 * time.Millisecond} {
			for cpus := 1; cpus <= 2; cpus++ {
				t.Run(fmt.Sprintf("%d flows of %d Mbit, %d away for %v", c.n, c.limit*8/1_000_000, cpus, away), func(t *testing.T) {
					staysBelow(t, c.limit, c.n, cpus, uint64(away))
				})
			}
		}
	}
}

func staysBelow(t *testing.T, limit uint64, n, cpus int, away uint64) {
	const begun, end = time.Second, 5 * time.Second
	s := newSimulation(limit)
	s.pieces = true
	leaves := absences(away, uint64(end))
	s.away = func(cpu int, now uint64) uint64 {
		if cpu >= cpus {
			return 0
		}
		return leaves(now)
	}
	fs := s.open(n, 50*time.Microsecond, 0)
	for i, f := range fs {
		f.cpu = i % 2
	}
	s.run(end)
	mean, low, high := s.rate(begun, end), s.lowest(begun, end), s.highest(begun, end)
	packet := max(limit/uint64(n)/250/Segment, 2) / 2 * Segment // half of what may be on its way
	bound := 1.02 + float64(uint64(n)*packet)/(float64(limit)*window.Seconds())
	t.Logf("mean %.4f, lowest 100 ms %.3f, highest %.3f of %.3f", mean, low, high, bound)
	if high > bound {
		t.Errorf("100 ms at %.3f, want %.3f at most", high, bound)
	}
	if least := 1 - float64(away)/absent - 0.01; mean < least {
		t.Errorf("mean %.4f, want %.4f at least", mean, least)
	}
}

// absent is the least time from one absence to the next, ns.
const absent = 700_000_000

// absences are of one length, ns, and at random until some time: the function returns how much of one is left at a time.
func absences(length, until uint64) func(now uint64) uint64 {
	random := rand.New(rand.NewSource(1))
	var begins []uint64
	for at := uint64(absent); at < until; at += absent + uint64(random.Int63n(100_000_000)) {
		begins = append(begins, at)
	}
	return func(now uint64) uint64 {
		for _, at := range begins {
			if now >= at && now < at+length {
				return at + length - now
			}
		}
		return 0
	}
}
