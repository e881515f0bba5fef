package cost

import (
	"slices"
	"time"
)

// A Loop is what a loop that only computes was left with on a CPU.
type Loop struct {
	Elapsed   time.Duration // by the clock
	looked    time.Duration // of this its chunks were timed
	apparent  time.Duration // so much the kernel charged it for then
	effective time.Duration // and so much it computed
	sample    []time.Duration
}

// spoiled is how many times as long as the fast ones a chunk takes into which something has come: an
// interrupt takes as long as a chunk does, at the least, and a CPU's own speed does not halve from one to
// the next.
const spoiled = 1.5

// sampled is how many chunks there are to one that tells how fast the fast ones are.
const sampled = 61

// Add looks at what chunks of the same work took, for which the kernel charged so much. Those that took much longer than the fast
// ones were interrupted, and did no more than the others. It is part of a loop that is timed, so it is quick and makes no garbage.
func (l *Loop) Add(chunks []time.Duration, charged time.Duration) {
	l.sample = l.sample[:0]
	for i := 0; i < len(chunks); i += sampled {
		l.sample = append(l.sample, chunks[i])
	}
	slices.Sort(l.sample)
	fast := l.sample[len(l.sample)/20]
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
	l.apparent += charged
	l.effective += clean + time.Duration(float64(len(chunks)-n)*float64(clean)/float64(n))
}

// EffectivePercent is which part of the CPU it computed with.
func (l Loop) EffectivePercent() float64 { return percent(l.effective, l.looked) }

// ApparentPercent is which part of the CPU the kernel says that it had.
func (l Loop) ApparentPercent() float64 { return percent(l.apparent, l.looked) }

// LeftPercent is with which part of what the kernel says that it had it computed: other tasks that want the CPU do not
// lower it.
func (l Loop) LeftPercent() float64 { return percent(l.effective, l.apparent) }

func percent(part, of time.Duration) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(part) / float64(of)
}
