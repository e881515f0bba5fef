package plan

import (
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

// waitingOf is what the limits of a policy ask for whose workloads have a class there, by number.
func waitingOf(p *policy.Policy, numbers map[string]int) Waiting {
	q := Queue{Scheduler: policy.HTB, Rate: 8 * fair.MaxLimit, Classes: 1, Leaf: LeafBFIFO, Map: SpreadOver(1), Weighs: true}
	for _, w := range p.Workloads {
		n, ok := numbers[w.Name]
		if !ok {
			continue
		}
		for len(q.Shares) <= n {
			q.Shares = append(q.Shares, Share{})
		}
		limit := w.Contract.Ingress.Max
		q.Shares[n] = Share{Max: limit - limit%8}
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
