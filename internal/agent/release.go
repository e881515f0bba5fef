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
// What others left in the least urgent class starves by right. Of who has a right to go
// it is dropped with the rest of the class, and TCP sends it again. Nothing else is dropped
// but a gap ([dropGap]): a starving flow that loses all that is on its way has only its
// timer to learn it by, which has grown to seconds.
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
		attempts := 0
		for now := before; waiting(now, r.to); {
			moves, err := keepsMoving(g, l, r.id)
			if err != nil {
				return err
			}
			if moves {
				return dropGap(l, r, before)
			}
			if attempts++; attempts > releases {
				return nil
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

// dropGap drops what still waits below a raised contract of what had waited before: the
// contract moves, so a flow of it may have set out before all its packets had gone. It sends
// past those for as long as its buffers last, and then stands still for good. Its
// acknowledgements go on, so TCP sends them again within a round trip; only where it had
// given them up, and saw others of them arrive (F-RTO), once its timer ends. They are in the
// class that it was raised out of, or in the least urgent, where it had to make way.
func dropGap(l state.LinkRecord, r rise, before []tc.ClassCounters) error {
	now, err := tc.Counters(l.Index)
	if err != nil {
		return err
	}
	for c := range min(int(r.to), len(now), len(before)) {
		if r.from >= 0 && c != r.from && c != 0 {
			continue
		}
		var gap []int
		for b := range l.Queue.Leaves() {
			if left(before[c].Buckets[b], now[c].Buckets[b]) {
				gap = append(gap, b)
			}
		}
		if len(gap) == 0 {
			continue
		}
		if err := tc.Purge(l.Index, l.Queue, c, gap...); err != nil {
			return err
		}
	}
	return nil
}

// keepsMoving reports whether packets of a contract go out all the time. One
// here and there is a retransmission, or another connection of its own.
func keepsMoving(g *bpf.Generation, l state.LinkRecord, id plan.ContractID) (bool, error) {
	const moves = 3
	before, err := g.Counter(l.Index, id)
	if err != nil {
		return false, err
	}
	wait := min(stillness(l.Queue), mostStill)
	for since, seen := time.Now(), 0; seen < moves; {
		time.Sleep(starveLook)
		now, err := g.Counter(l.Index, id)
		if err != nil {
			return false, err
		}
		if now != before {
			before, since, seen = now, time.Now(), seen+1
		} else if time.Since(since) > wait {
			return false, nil
		}
	}
	return true, nil
}

// stillness is for how long nothing may be seen of a flow that fills a link: TCP hands
// down that much at once, and the next when that has left.
func stillness(q plan.Queue) time.Duration {
	still := 5 * time.Millisecond
	if q.Rate != 0 {
		const packets = 2 * 8 * 64 << 10 // bits
		still += time.Duration(packets * uint64(time.Second) / uint64(q.Rate))
	}
	return still
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
		is := after.Queue.ClassOf(after.Rules.Contracts[c.ID].Priority)
		if is > was {
			up = append(up, rise{c.ID, int(was), is})
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
