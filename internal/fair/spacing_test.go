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
		if got := spacing.Answer(c.due, took, flows*One, may, 0); got != c.want {
			t.Errorf("%d: due at %d ns, answers at %d, want %d: %s", i, c.due, got, c.want, c.why)
		}
	}
}

// TestSpacingByStep: whose turn is much later than its last answer was comes to that step by step, and takes no turn until
// then; whose turn is sooner has it at once.
func TestSpacingByStep(t *testing.T) {
	const due, may, turn = 10_000, 4 * spacingStep, 5 * spacingStep / 2
	spacing := Spacing{next: due + turn}
	for i, c := range []struct{ waited, want, next uint64 }{
		{0, due + spacingStep, due + turn},
		{spacingStep, due + 2*spacingStep, due + turn},
		{2 * spacingStep, due + turn, due + turn + spacingStep*7/8},
		{4 * spacingStep, due + turn + spacingStep*7/8, due + turn + 2*(spacingStep*7/8)},
	} {
		got := spacing.Answer(due, spacingStep, One, may, c.waited)
		if got != c.want || spacing.next != c.next {
			t.Errorf("%d: answers at %d, and the next one at %d, want %d and %d", i, got, spacing.next, c.want, c.next)
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
