package traffic

import (
	"math"
	"slices"
	"time"
)

// A Trace is a counter of bytes over time.
type Trace struct{ points []point }

type point struct {
	at    time.Time
	bytes uint64
}

// at is the count at a moment, between two readings in proportion.
func (t Trace) at(moment time.Time) float64 {
	i, found := slices.BinarySearchFunc(t.points, moment, func(p point, m time.Time) int { return p.at.Compare(m) })
	switch {
	case len(t.points) == 0:
		return 0
	case found || i == 0:
		return float64(t.points[i].bytes)
	case i == len(t.points):
		return float64(t.points[i-1].bytes)
	}
	before, after := t.points[i-1], t.points[i]
	part := float64(moment.Sub(before.at)) / float64(after.at.Sub(before.at))
	return float64(before.bytes) + part*float64(after.bytes-before.bytes)
}

// Mbit is the mean rate between two moments in Mbit/s. At moments that are no
// readings' it is an estimate.
func (t Trace) Mbit(from, to time.Time) float64 {
	seconds := to.Sub(from).Seconds()
	if seconds <= 0 {
		return 0
	}
	return (t.at(to) - t.at(from)) * 8 / 1e6 / seconds
}

// Reaches is the end of the first window, between two moments, over which the mean
// rate was at least so many Mbit/s; ok is false where there is none. Windows begin a
// millisecond apart.
func (t Trace) Reaches(mbit float64, window time.Duration, from, to time.Time) (end time.Time, ok bool) {
	for end = from.Add(window); !end.After(to); end = end.Add(time.Millisecond) {
		if t.Mbit(end.Add(-window), end) >= mbit {
			return end, true
		}
	}
	return time.Time{}, false
}

// Rates is the rate between each two readings, in Mbit/s, at the middle of
// their seconds since zero, as far as that lies between two moments.
func (t Trace) Rates(zero, from, to time.Time) [][2]float64 {
	var rates [][2]float64
	for i := 1; i < len(t.points); i++ {
		a, b := t.points[i-1], t.points[i]
		// The last reading, at the end, may follow the one before at once.
		span := b.at.Sub(a.at)
		middle := a.at.Add(span / 2)
		if span < time.Millisecond || middle.Before(from) || middle.After(to) {
			continue
		}
		rates = append(rates, [2]float64{rounded(middle.Sub(zero).Seconds()), rounded(float64(b.bytes-a.bytes) * 8 / 1e6 / span.Seconds())})
	}
	return rates
}

// rounded keeps what a plot can show; all digits would double a file.
func rounded(v float64) float64 { return math.Round(v*1e3) / 1e3 }

// Begin is the last reading before anything was counted; ok is false where nothing was.
func (t Trace) Begin() (at time.Time, ok bool) {
	for i := 1; i < len(t.points); i++ {
		if t.points[i].bytes > t.points[0].bytes {
			return t.points[i-1].at, true
		}
	}
	return time.Time{}, false
}
