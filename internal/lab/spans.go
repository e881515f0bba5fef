package lab

import (
	"math"
	"time"
)

// spans tell of each 100 ms what part of a limit got through, in per cent, and for how long a CPU was away, by when they begin.
//
// One in which that was for as much of it as the limit may be off tells of the machine, and not of the limit. It is unseen, and does
// not count, unless that leaves less than half of them.
type spans struct {
	part func(from time.Time) float64
	away func(from time.Time) time.Duration
}

// How far a span may be off: below and above the limit while it settles, and above it at any time, in per cent.
const mayBeOff, mayBeAbove = 5, 2

// settled is how long after a change spans are within 5 %, and stay so for the rest of a second, in ms, and what part of them
// is unseen, in per cent.
func (s spans) settled(change time.Time) (after, unseen float64) {
	return s.judge(change, change.Add(soonLook), rateSpan*mayBeOff/100, func(from time.Time) float64 {
		if math.Abs(s.part(from)-100) <= mayBeOff {
			return 0
		}
		return float64(from.Add(rateLook).Sub(change)) / float64(time.Millisecond)
	})
}

// highest is the most that a span has which begins between two moments, in per cent, and what part of them is unseen.
func (s spans) highest(from, to time.Time) (most, unseen float64) {
	return s.judge(from, to, rateSpan*mayBeAbove/100, s.part)
}

// judge is the most of what counts of spans between two moments, and what part of them does not, in per cent: those in which
// a CPU was away for as long as may be.
func (s spans) judge(begin, end time.Time, mayBe time.Duration, of func(from time.Time) float64) (most, unseen float64) {
	var all float64
	n, gone := 0, 0
	for from := begin; from.Before(end); from = from.Add(rateLook) {
		n++
		all = max(all, of(from))
		if s.away(from) >= mayBe {
			gone++
			continue
		}
		most = max(most, of(from))
	}
	if gone > n/2 {
		most = all
	}
	return most, 100 * float64(gone) / float64(max(n, 1))
}
