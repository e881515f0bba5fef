package fair

import (
	"math"
	"time"
)

const window = 100 * time.Millisecond // of what is promised

// rate is what went over the wire in a stretch of time, in parts of the limit.
func (s *simulation) rate(from, to time.Duration) float64 {
	var sum uint64
	for slot := from / slotLength; slot < to/slotLength && int(slot) < len(s.wire); slot++ {
		sum += s.wire[slot]
	}
	return float64(sum) / (to - from).Seconds() / float64(s.budget.Limit)
}

// highest is the rate of the fullest window.
func (s *simulation) highest(from, to time.Duration) (rate float64) {
	for w := from; w+window <= to; w += slotLength {
		rate = max(rate, s.rate(w, w+window))
	}
	return rate
}

// lowest is the same of the least.
func (s *simulation) lowest(from, to time.Duration) (rate float64) {
	rate = math.Inf(1)
	for w := from; w+window <= to; w += slotLength {
		rate = min(rate, s.rate(w, w+window))
	}
	return rate
}

// settled is after what time every window is within 5 % and grain of the limit.
func (s *simulation) settled(from, to time.Duration, grain float64) time.Duration {
	last := from
	for w := from; w+window <= to; w += slotLength {
		if math.Abs(s.rate(w, w+window)-1) > 0.05+grain {
			last = w + slotLength
		}
	}
	return last - from
}

// totals are the bytes that each sender has sent.
func totals(fs []*sender) []uint64 {
	var t []uint64
	for _, f := range fs {
		t = append(t, f.total)
	}
	return t
}

// since is what they have sent since, all together.
func since(fs []*sender, before []uint64) (sum float64) {
	for i, f := range fs {
		sum += float64(f.total - before[i])
	}
	return sum
}

// jain is Jain's index of fairness of what they have sent since.
func jain(fs []*sender, before []uint64) float64 {
	var squares float64
	for i, f := range fs {
		x := float64(f.total - before[i])
		squares += x * x
	}
	sum := since(fs, before)
	return sum * sum / squares / float64(len(fs))
}
