package lab

import (
	"testing"
	"time"
)

func TestSpansSettle(t *testing.T) {
	change := time.Unix(1000, 0)
	always := func(by float64) func(float64) float64 { return func(float64) float64 { return by } }
	when := func(by float64, is func(ms float64) bool) func(float64) float64 {
		return func(ms float64) float64 {
			if is(ms) {
				return by
			}
			return 1
		}
	}
	here := always(0)
	stumbles := func(ms float64) bool { return ms > 495 && ms < 505 }
	for name, c := range map[string]struct {
		off, away func(ms float64) float64 // by when the window begins; away in ms
		want      finding
	}{
		"at once":                     {always(4.9), here, finding{}},
		"after 200 ms":                {when(-40, func(ms float64) bool { return ms < 200 }), here, finding{200, 200, 0}},
		"too much at once":            {when(30, func(ms float64) bool { return ms < 20 }), here, finding{20, 20, 0}},
		"it comes back":               {when(6, stumbles), here, finding{510, 510, 0}},
		"never":                       {always(-6), here, finding{1000, 1000, 0}},
		"a CPU was away":              {when(-7, stumbles), when(5, stumbles), finding{510, 0, 1}},
		"a CPU was away a little":     {when(-7, stumbles), when(4.9, stumbles), finding{510, 510, 0}},
		"a CPU was away elsewhere":    {when(-7, stumbles), when(50, func(ms float64) bool { return ms < 100 }), finding{510, 510, 10}},
		"it was late, and CPUs away":  {when(-7, func(ms float64) bool { return ms < 450 }), when(9, func(ms float64) bool { return ms > 395 && ms < 595 }), finding{450, 400, 20}},
		"a CPU was away half of it":   {when(-7, stumbles), when(9, func(ms float64) bool { return ms >= 500 }), finding{510, 0, 50}},
		"a CPU was away most of it":   {when(-7, stumbles), when(9, func(ms float64) bool { return ms >= 490 }), finding{510, 0, 51}},
		"a CPU was away all the time": {always(-6), always(100), finding{1000, 0, 100}},
	} {
		ms := func(from time.Time) float64 { return float64(from.Sub(change)) / float64(time.Millisecond) }
		s := spans{
			part: func(from time.Time) float64 { return 100 + c.off(ms(from)) },
			away: func(from time.Time) time.Duration { return time.Duration(c.away(ms(from)) * float64(time.Millisecond)) },
		}
		if got := s.settled(change); got != c.want {
			t.Errorf("%s: settled %+v, want %+v", name, got, c.want)
		}
	}
}

func TestSpansHighest(t *testing.T) {
	zero := time.Unix(1000, 0)
	at := func(span int) time.Time { return zero.Add(time.Duration(span) * rateLook) }
	for name, c := range map[string]struct {
		away map[int]time.Duration // by the number of the span
		want finding
	}{
		"the highest of all":            {nil, finding{107, 107, 0}},
		"it is one with a CPU away":     {map[int]time.Duration{7: 2 * time.Millisecond}, finding{107, 106, 10}},
		"it was away for less":          {map[int]time.Duration{7: 1900 * time.Microsecond}, finding{107, 107, 0}},
		"in more than half it was":      {map[int]time.Duration{2: rateSpan, 3: rateSpan, 4: rateSpan, 5: rateSpan, 6: rateSpan, 7: rateSpan}, finding{107, 101, 60}},
		"in half":                       {map[int]time.Duration{3: rateSpan, 4: rateSpan, 5: rateSpan, 6: rateSpan, 7: rateSpan}, finding{107, 102, 50}},
		"where it is not the highest":   {map[int]time.Duration{1: rateSpan}, finding{107, 107, 10}},
		"before and after do not count": {map[int]time.Duration{-1: rateSpan, 10: rateSpan}, finding{107, 107, 0}},
	} {
		s := spans{
			part: func(from time.Time) float64 {
				switch i := int(from.Sub(zero) / rateLook); {
				case i < 0 || i > 9:
					return 200
				case i > 7:
					return 90
				default:
					return 100 + float64(i)
				}
			},
			away: func(from time.Time) time.Duration { return c.away[int(from.Sub(zero)/rateLook)] },
		}
		if got := s.highest(at(0), at(10)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := (spans{}).highest(at(1), at(1)); got != (finding{}) {
		t.Errorf("of no span: %+v", got)
	}
}

func TestSpansFarthest(t *testing.T) {
	zero := time.Unix(1000, 0)
	end := zero.Add(10 * rateLook)
	for name, c := range map[string]struct {
		parts []float64 // of the spans from zero on, the last one of all that follow
		want  float64
	}{
		"all of it always": {[]float64{100}, 0},
		"once above":       {[]float64{100, 103, 100}, 3},
		"once below":       {[]float64{100, 103, 96, 100}, 4},
		"nothing":          {[]float64{0}, 100},
		"later":            {[]float64{100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 50}, 0},
	} {
		s := spans{
			part: func(from time.Time) float64 { return c.parts[min(int(from.Sub(zero)/rateLook), len(c.parts)-1)] },
			away: func(time.Time) time.Duration { return rateSpan },
		}
		if got := s.farthest(zero, end).all; got != c.want {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
}
