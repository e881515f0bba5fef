package cost

import "time"

// A luck is what the lot has done on one CPU: how many there were of each kind of work for each that one which was timed
// stands for. How many there were is counted, so what is only drawn can be put right by it.
type luck struct {
	works [Other + 1]float64
	all   float64 // softirqs of all kinds
}

// luck tells it, of what happened in an interval.
func (c CPU) luck() luck {
	var l luck
	var runs, stood uint64
	for w := range l.works {
		l.works[w] = over(c.Runs[w], c.Stood[w])
		if Work(w) != IRQ {
			runs, stood = runs+c.Runs[w], stood+c.Stood[w]
		}
	}
	l.all = over(runs, stood)
	return l
}

// over is 1 where nothing was timed, or nothing is known of it.
func over(runs, stood uint64) float64 {
	if runs == 0 || stood == 0 {
		return 1
	}
	return float64(runs) / float64(stood)
}

// of puts times right that are measured.
func (l luck) of(times [Other + 1]time.Duration) [Other + 1]time.Duration {
	for w := range times {
		times[w] = time.Duration(float64(times[w]) * l.works[w])
	}
	return times
}

// ofRow puts a row of the CPU right. Of its packets it is not known which kind of softirq had them.
func (l luck) ofRow(r Row) Row {
	measured := l.of([Other + 1]time.Duration(r.Times[:Other+1]))
	copy(r.Times[:], measured[:])
	r.Packets = uint64(float64(r.Packets)*l.all + 0.5)
	r.Bytes = uint64(float64(r.Bytes)*l.all + 0.5)
	return r
}
