package lab

import (
	"slices"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
)

// absences are the times in which a CPU was away.
type absences []traffic.Absence

// within is for how long of the time between two moments a CPU was away, whichever: what several miss at once counts once,
// as traffic that needs each of them stands still for as long.
func (a absences) within(from, to time.Time) (all time.Duration) {
	sorted := slices.SortedFunc(slices.Values(a), func(x, y traffic.Absence) int { return x.Begin.Compare(y.Begin) })
	for _, one := range sorted {
		begin, end := one.Begin, one.End
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		if begin.Before(end) {
			all += end.Sub(begin)
			from = end
		}
	}
	return all
}
