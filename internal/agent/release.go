package agent

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

const (
	starveLook  = 2 * time.Millisecond   // between two looks whether anything moves
	releaseTime = 100 * time.Millisecond // that strict order may be suspended to let out a class, which holds some 20 ms of the line
	mostStill   = time.Second            // that a flow may not be seen on the slowest links
	releases    = 3                      // attempts
)

// A rise is a contract that goes to a more urgent class of a link.
type rise struct {
	id   plan.ContractID
	from int // class; less than 0 where nobody knows
	to   uint8
	rate policy.Rate // that it may have of a full line: its share's, or the line's; 0 without any
}

// release lets the packets out that wait in starving classes below a raised contract.
//
// A flow that is raised out of a starving class does not move by itself: its
// last packets still wait there, and TCP neither sends new ones while they are in
// a queue of this host (TCP small queues) nor retransmits them
// (tcp_retransmit_skb refuses what skb_still_in_host_queue). Under strict order
// that is for as long as the line stays full. So where nothing of the raised
// contract moves, all others that keep the line full go elsewhere for a moment: who has
// a right to go as early as what was raised joins the starving class, all others go by
// the least urgent. What waits goes out, and its acknowledgements set the flow free.
//
// What others left behind is dropped at the end, and TCP sends it again: they go on in their own
// classes, and what starves elsewhere would be a gap in what they send. Where it lies in one
// queue with what starved there before and still does, it stays: a starving flow that loses all that is on its
// way has only its timer to learn it by, which has grown to seconds. But where they have a right
// to go as early as what was raised, all of its class is dropped.
//
// done is true where anything was let out.
func (a *Agent) release(g *bpf.Generation, l state.LinkRecord, r rise) (done bool, err error) {
	if !queues(l.Queue) {
		return false, nil
	}
	err = a.inScope(func() error {
		before, err := tc.Counters(l.Index)
		if err != nil {
			return err
		}
		first, err := g.Counter(l.Index, r.id)
		if err != nil {
			return err
		}
		for now, attempts := before, 0; waiting(now, r.to); attempts++ {
			moves, sent, err := keepsMoving(g, l, r)
			if err != nil {
				return err
			}
			if moves || attempts == releases {
				return dropGaps(l, r, before, moves || sent != first, done)
			}
			done = true
			if err := letOut(g, l, r); err != nil {
				return err
			}
			if now, err = tc.Counters(l.Index); err != nil {
				return err
			}
		}
		return nil
	})
	return done, err
}

// dropGaps drops what still waits below a raised contract and is a gap in what somebody sends:
// of the contract, once it has set out, what had waited before; of those who made way for it,
// what is in the least urgent class where nothing of that is left. Their acknowledgements go on, so TCP
// sends it again within a round trip. Only a flow that had given such packets up, and then saw
// others of them arrive (F-RTO), waits for its timer. Without that it would send past the gap
// for as long as its buffers last, and then stand still for good.
//
// What waited of the contract is in the class that it was raised out of, or in the least urgent,
// where it had to make way.
func dropGaps(l state.LinkRecord, r rise, before []tc.ClassCounters, setOut, madeWay bool) error {
	now, err := tc.Counters(l.Index)
	if err != nil {
		return err
	}
	for c := range min(int(r.to), len(now), len(before)) {
		own := setOut && (r.from < 0 || c == r.from || c == 0)
		var gaps []int
		for b := range l.Queue.Leaves() {
			if own && left(before[c], now[c], b) || c == 0 && madeWay && joined(before[c], now[c], b) {
				gaps = append(gaps, b)
			}
		}
		if len(gaps) == 0 {
			continue
		}
		if err := tc.Purge(l.Index, l.Queue, c, gaps...); err != nil {
			return err
		}
	}
	return nil
}

// joined reports that what waits in a bucket of a class came after all that had waited there before.
func joined(was, is tc.ClassCounters, bucket int) bool {
	return is.Buckets[bucket].Backlog > 0 && !left(was, is, bucket)
}

// keepsMoving reports whether packets of a contract go out all the time, and what it has
// sent. One here and there is a retransmission, or another connection of its own.
func keepsMoving(g *bpf.Generation, l state.LinkRecord, r rise) (moves bool, sent bpf.Counter, err error) {
	const enough = 3
	if sent, err = g.Counter(l.Index, r.id); err != nil {
		return false, sent, err
	}
	wait := min(stillness(r.rate), mostStill)
	for since, seen := time.Now(), 0; seen < enough; {
		time.Sleep(starveLook)
		now, err := g.Counter(l.Index, r.id)
		if err != nil {
			return false, sent, err
		}
		if now != sent {
			sent, since, seen = now, time.Now(), seen+1
		} else if time.Since(since) > wait {
			return false, sent, nil
		}
	}
	return true, sent, nil
}

// stillness is for how long nothing may be seen of a flow that has all of a rate: TCP hands
// down that much at once, and the next when that has left.
func stillness(rate policy.Rate) time.Duration {
	still := 5 * time.Millisecond
	if rate != 0 {
		const packets = 2 * 8 * 64 << 10 // bits
		still += time.Duration(packets * uint64(time.Second) / uint64(rate))
	}
	return still
}

// mayHave is what the packets of a written priority may have of a full line.
func mayHave(q plan.Queue, written uint32) policy.Rate {
	if n, ok := q.ShareOf(written); ok {
		return cmp.Or(q.Shares[n].Min, q.Shares[n].Max)
	}
	return q.Rate
}

// queues reports whether a link's classes are queues of which one can starve
// another, and that packets are sorted into when they come.
func queues(q plan.Queue) bool {
	switch q.Scheduler {
	case policy.HTB, policy.Prio, policy.ETS:
		return true
	}
	return false
}

func waiting(counters []tc.ClassCounters, target uint8) bool {
	for _, c := range counters {
		if c.Class < int(target) && c.Backlog > 0 {
			return true
		}
	}
	return false
}

// raised are the contracts that a change puts into a more urgent class of a link, in no
// order.
func raised(have plan.State, w *plan.Want, link string) (up []rise) {
	before, after := have.Links[link], w.Links[link]
	if !before.Queue.Undivided().Equal(after.Queue.Undivided().Normal()) {
		return nil // another queue: nothing waits in it yet
	}
	for name, c := range w.Contracts {
		was := before.Queue.ClassOf(before.Rules.Contracts[have.Contracts[name].ID].Priority)
		written := after.Rules.Contracts[c.ID].Priority
		if is := after.Queue.ClassOf(written); is > was {
			up = append(up, rise{c.ID, int(was), is, mayHave(after.Queue, written)})
		}
	}
	return up
}

// releaseRaised lets out what waits below the contracts that a change raised, on each
// link once: what is let out for the one that was raised highest is for all.
func (c *change) releaseRaised(have plan.State, w *plan.Want) error {
	const enough = 16
	for _, link := range sortedKeys(w.Links) {
		highest := raised(have, w, link)
		slices.SortFunc(highest, func(a, b rise) int { return cmp.Or(cmp.Compare(b.to, a.to), cmp.Compare(a.id, b.id)) })
		for _, r := range highest[:min(enough, len(highest))] {
			done, err := c.release(c.generation, c.record.Links[link], r)
			if err != nil {
				return err
			}
			if done {
				break
			}
		}
	}
	return nil
}
