package cost

import "testing"

// The buckets are those of bpf/meter.bpf.c: bucketOf is its bucket_of.
func TestDurations(t *testing.T) {
	h := Durations(make([]uint64, 320))
	for i, low := range h.Lows {
		if got := bucketOf(uint64(low)); got != i {
			t.Fatalf("bucket %d begins at %.0f, which is in bucket %d", i, low, got)
		}
		if i > 0 && low <= h.Lows[i-1] {
			t.Fatalf("bucket %d begins at %.0f, before the last", i, low)
		}
		if i > 0 && bucketOf(uint64(low)-1) != i-1 {
			t.Fatalf("what is just below %.0f is in bucket %d, not %d", low, bucketOf(uint64(low)-1), i-1)
		}
	}
}

func bucketOf(ns uint64) int {
	if ns < durationParts {
		return int(ns)
	}
	log := 0
	for v := ns; v > 1; v >>= 1 {
		log++
	}
	return (log-2)*durationParts + int(ns>>(log-3)) - durationParts
}

func TestQuantile(t *testing.T) {
	h := Sizes([]uint64{0, 90, 0, 9, 1})
	for q, want := range map[float64]float64{0.01: 1, 0.5: 1, 0.9: 1, 0.91: 3, 0.99: 3, 1: 4} {
		if got := h.Quantile(q); got != want {
			t.Errorf("quantile %g: %g, want %g", q, got, want)
		}
	}
	if got := Sizes(make([]uint64, 3)).Quantile(0.5); got != 0 {
		t.Errorf("of nothing the median is %g", got)
	}
}
