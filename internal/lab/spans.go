package lab

import (
	"math"
	"time"
)

// spans tell of each 100 ms what part of a limit got through, in per cent, and for how long a CPU was away, by when they begin.
type spans struct {
	part func(from time.Time) float64
	away func(from time.Time) time.Duration
}

// A finding is what was found of all spans between two moments; of those alone in which no CPU was away for as much as the limit
// may be off, as the others may tell of the machine; and which part those others are, in per cent.
type finding struct{ all, here, away float64 }

// How far a span may be off: below and above the limit while it settles, and above it at any time, in per cent.
const mayBeOff, mayBeAbove = 5, 2

// settled is how long after a change spans are within 5 %, and stay so for the rest of a second, in ms.
func (s spans) settled(change time.Time) finding {
	return s.most(change, change.Add(soonLook), rateSpan*mayBeOff/100, func(from time.Time) float64 {
		if math.Abs(s.part(from)-100) <= mayBeOff {
			return 0
		}
		return float64(from.Add(rateLook).Sub(change)) / float64(time.Millisecond)
	})
}

// highest is the most that a span has which begins between two moments, in per cent.
func (s spans) highest(from, to time.Time) finding {
	return s.most(from, to, rateSpan*mayBeAbove/100, s.part)
}

// farthest is how far a span is from the limit that begins between two moments, at most, in per cent of it.
func (s spans) farthest(from, to time.Time) finding {
	return s.most(from, to, rateSpan*mayBeAbove/100, func(from time.Time) float64 { return math.Abs(s.part(from) - 100) })
}

// most is the most of something of the spans that begin between two moments. A CPU may be away for less than so long.
func (s spans) most(begin, end time.Time, mayBe time.Duration, of func(from time.Time) float64) (f finding) {
	n, gone := 0, 0
	for from := begin; from.Before(end); from = from.Add(rateLook) {
		n++
		f.all = max(f.all, of(from))
		if s.away(from) >= mayBe {
			gone++
			continue
		}
		f.here = max(f.here, of(from))
	}
	f.away = 100 * float64(gone) / float64(max(n, 1))
	return f
}
