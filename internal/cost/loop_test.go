package cost

import (
	"math"
	"testing"
	"time"
)

func TestLoop(t *testing.T) {
	us := time.Microsecond
	for name, tc := range map[string]struct {
		chunk func(i int) time.Duration
		want  float64
	}{
		"undisturbed":                      {func(int) time.Duration { return us }, 100},
		"each second one interrupted":      {func(i int) time.Duration { return us + time.Duration(i%2)*2*us }, 50},
		"slower by turns":                  {func(i int) time.Duration { return us + time.Duration(i%2)*us/4 }, 100},
		"nearly all interrupted":           {func(i int) time.Duration { return us + time.Duration(min(i%10, 1))*4*us }, 100 * 1 / 4.6},
		"once away for as long as all run": {func(i int) time.Duration { return us + time.Duration(max(0, i-998))*1000*us }, 50},
	} {
		var l Loop
		took := make([]time.Duration, 1000)
		for i := range took {
			took[i] = tc.chunk(i)
		}
		l.Add(took, 0)
		if got := l.EffectivePercent(); math.Abs(got-tc.want) > 0.5 {
			t.Errorf("%s: effective %.2f %%, want %.2f", name, got, tc.want)
		}
	}
}
