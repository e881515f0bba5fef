package fair

import (
	"fmt"
	"testing"
	"time"
)

// TestSpacing: who is due while somebody else has a turn answers after that, unless it may not wait for so long.
func TestSpacing(t *testing.T) {
	const (
		flows, took = 4, 8000
		turn        = took / flows * 7 / 8
		may         = 3 * turn
	)
	var spacing Spacing
	for i, c := range []struct {
		due, want uint64
		why       string
	}{
		{10_000, 10_000, "nobody else answers"},
		{10_000, 10_000 + turn, "one does at that time"},
		{10_000, 10_000 + 2*turn, "two do"},
		{10_000 + 2*turn, 10_000 + 3*turn, "the third one has its turn"},
		{10_000, 10_000, "its turn would be later than it may be"},
		{10_000 + turn, 10_000 + 4*turn, "it may wait for so long, and who did not wait has had no turn"},
		{90_000, 90_000, "all have answered"},
	} {
		if got := spacing.Answer(c.due, took, flows*One, may); got != c.want {
			t.Errorf("%d: due at %d ns, answers at %d, want %d: %s", i, c.due, got, c.want, c.why)
		}
	}
}

// TestAnswersComeApart: what connections below a limit ask for comes one after another, however they began.
func TestAnswersComeApart(t *testing.T) {
	const segments, crowd = 8, 12
	for _, limit := range []uint64{10e6 / 8, 100e6 / 8, 1e9 / 8} {
		for _, n := range []int{8, 32, 128} {
			t.Run(fmt.Sprintf("%d flows, %g Mbit/s", n, float64(limit)*8/1e6), func(t *testing.T) {
				slot := segments * Segment * second / limit
				begins := uint64(second) + 16*uint64(n)*Segment*second/limit // what they begin with is five turns of two segments
				came := receive(limit, receivers(n, limit, 50*time.Microsecond, 0, 0), 0, time.Duration(begins+2*second), time.Duration(slot))
				most, crowded := uint64(0), 0
				slots := came[begins/slot:]
				for _, bytes := range slots {
					most = max(most, bytes)
					if bytes > crowd*Segment {
						crowded++
					}
				}
				t.Logf("at most %d segments in the time of %d, more than %d in %d of %d", most/Segment, segments, crowd, crowded, len(slots))
				if 100*crowded > len(slots) {
					t.Errorf("%d of %d times of %d segments have more than %d", crowded, len(slots), segments, crowd)
				}
			})
		}
	}
}
