package cost

import (
	"slices"
	"time"
)

// A Loop is what a loop that only computes was left with on a CPU.
type Loop struct {
	Elapsed   time.Duration // by the clock
	Apparent  time.Duration // that the kernel charged it for
	looked    time.Duration // of this its chunks were timed
	effective time.Duration // and so much it computed then
}

// spoiled is how many times as long as the fast ones a chunk takes into which something has come: an
// interrupt takes as long as a chunk does, at the least, and a CPU's own speed does not halve from one to
// the next.
const spoiled = 1.5

// Add looks at what chunks of the same work took. Those that took much longer than the fast ones were interrupted, and
// did no more than the others.
func (l *Loop) Add(chunks []time.Duration) {
	sorted := slices.Sorted(slices.Values(chunks))
	fast := sorted[len(sorted)/20]
	limit := time.Duration(spoiled * float64(fast))
	var clean, all time.Duration
	n := 0
	for _, took := range chunks {
		all += took
		if took <= limit {
			clean += took
			n++
		}
	}
	l.looked += all
	l.effective += clean + time.Duration(float64(len(chunks)-n)*float64(clean)/float64(n))
}

// EffectivePercent is which part of the CPU it computed with.
func (l Loop) EffectivePercent() float64 { return percent(l.effective, l.looked) }

// ApparentPercent is which part of the CPU the kernel says that it had.
func (l Loop) ApparentPercent() float64 { return percent(l.Apparent, l.Elapsed) }

func percent(part, of time.Duration) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(part) / float64(of)
}
