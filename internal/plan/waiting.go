package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/fair"
	"github.com/weir-net/weir/internal/policy"
)

// An acknowledgement that waits in a queue of Weir's stands for what it acknowledges: it is
// WaitingLength bytes long, and one more for each 1<<WaitingUnit bytes of that.
const (
	WaitingLength = 144
	WaitingUnit   = 6
)

// WaitingRoom is under what name [IDs] keeps which class of that queue is whose: of no link's.
const WaitingRoom = " answers"

// A Waiting is where the acknowledgements of what workloads receive wait, where links keep none: a
// device of Weir's own whose queue has a class for each such limit. The zero Waiting is none.
type Waiting struct {
	Queue Queue
	Drift []string // in words: where it is not as Weir builds it
}

// queueAnswers gives a class to each limit whose answers wait in one, where there is room; before are
// the numbers of the classes that there were.
func (w *Want) queueAnswers(p *policy.Policy, explicit []Explicit, before map[string]int) {
	limits := map[string]policy.Rate{}
	for _, workload := range p.Workloads {
		if w.Received[workload.Name].Method == policy.MethodHTB {
			limits[workload.Name] = workload.Contract.Ingress.Max
		}
	}
	for _, e := range explicit {
		if of := e.Contract.Ingress; of.Max != 0 && of.Method == policy.MethodHTB {
			limits[e.Name] = of.Max
		}
	}
	numbers := number(slices.Sorted(maps.Keys(limits)), before)
	w.Received.crowd(numbers)
	maps.DeleteFunc(numbers, func(_ string, n int) bool { return n >= MaxShares })
	if len(numbers) > 0 {
		w.IDs.Shares[WaitingRoom] = numbers
		w.Waiting = waitingOf(limits, numbers)
	}
}

// waitingOf has a class for each limit that has a number.
func waitingOf(limits map[string]policy.Rate, numbers map[string]int) Waiting {
	q := Queue{Scheduler: policy.HTB, Rate: 8 * fair.MaxLimit, Classes: 1, Leaf: LeafBFIFO, Map: SpreadOver(1), Weighs: true}
	for name, n := range numbers {
		for len(q.Shares) <= n {
			q.Shares = append(q.Shares, Share{})
		}
		q.Shares[n] = Share{Max: limits[name] - limits[name]%8}
	}
	return Waiting{Queue: q.Normal()}
}

// Any reports whether there is any part of it.
func (w Waiting) Any() bool { return w.Queue.Classes > 0 || len(w.Drift) > 0 }

// unlike says how two differ, "" if they do not.
func (w Waiting) unlike(other Waiting) string {
	is, shall := w.words(), other.words()
	if is == shall && !w.Queue.Equal(other.Queue) {
		is, shall = w.Queue.unlike(other.Queue)
	}
	if is == shall {
		return ""
	}
	return is + " -> " + shall
}

func (w Waiting) words() string {
	switch {
	case len(w.Drift) > 0:
		return "answers wait in htb (" + strings.Join(w.Drift, "; ") + ")"
	case !w.Any():
		return "no answers wait"
	}
	return "answers wait in htb"
}
