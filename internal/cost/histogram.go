package cost

import "math"

// A Histogram counts values in buckets: Counts[i] of them were at least Lows[i], and
// below Lows[i+1].
type Histogram struct {
	Lows   []float64
	Counts []uint64
}

// durationParts is how many buckets there are to each power of two (bpf/meter.h).
const durationParts = 8

// Durations is a histogram of durations in ns, with the buckets of the meter.
func Durations(counts []uint64) Histogram {
	h := Histogram{Lows: make([]float64, len(counts)), Counts: counts}
	for i := range counts {
		if i < durationParts {
			h.Lows[i] = float64(i)
			continue
		}
		log, part := (i-durationParts)/durationParts+3, (i-durationParts)%durationParts
		h.Lows[i] = math.Ldexp(1+float64(part)/durationParts, log)
	}
	return h
}

// Sizes is a histogram of numbers from 0 on, the last bucket of all that are larger.
func Sizes(counts []uint64) Histogram {
	h := Histogram{Lows: make([]float64, len(counts)), Counts: counts}
	for i := range counts {
		h.Lows[i] = float64(i)
	}
	return h
}

// Since returns what was counted since an earlier reading.
func (h Histogram) Since(before Histogram) Histogram {
	d := Histogram{Lows: h.Lows, Counts: make([]uint64, len(h.Counts))}
	copy(d.Counts, h.Counts)
	for i, n := range before.Counts {
		d.Counts[i] -= n
	}
	return d
}

// Count is how many values there are.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Quantile returns the low end of the bucket that the q-th part of the values reaches into; 0 where
// there are none.
func (h Histogram) Quantile(q float64) float64 {
	rank := uint64(math.Ceil(q * float64(h.Count())))
	var n uint64
	for i, c := range h.Counts {
		n += c
		if c > 0 && n >= rank {
			return h.Lows[i]
		}
	}
	return 0
}

// summary says how the values are distributed, in units of scale.
func (h Histogram) summary(scale float64) Summary {
	s := Summary{
		P50: scale * h.Quantile(0.5), P90: scale * h.Quantile(0.9), P99: scale * h.Quantile(0.99), Max: scale * h.Quantile(1), Buckets: []Bucket{},
	}
	for i, n := range h.Counts {
		if n > 0 {
			s.Buckets = append(s.Buckets, Bucket{scale * h.Lows[i], n})
		}
	}
	return s
}
