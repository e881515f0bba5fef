package agent

import (
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
	releases    = 3                      // attempts
)

// release lets the packets out that wait in starving classes below a target.
//
// A flow that is raised out of a starving class does not move by itself: its
// last packets still wait there, and TCP neither sends new ones while they are in
// a queue of this host (TCP small queues) nor retransmits them
// (tcp_retransmit_skb refuses what skb_still_in_host_queue). Under strict order
// that is for as long as the line stays full. So where nothing of the raised
// contract moves, all other packets of the link join the starving class for a
// moment: what waits there goes out, and its acknowledgements set the flow free.
// They do not go by a lower class: what they leave in it would starve in turn.
func (a *Agent) release(g *bpf.Generation, l state.LinkRecord, raised plan.ContractID, target uint8) error {
	if !queues(l.Queue) {
		return nil
	}
	return a.inScope(func() error {
		for range releases {
			classes, err := tc.Counters(l.Index)
			if err != nil || !waiting(classes, target) {
				return err
			}
			if moves, err := keepsMoving(g, l.Index, raised); err != nil || moves {
				return err
			}
			if err := letOut(g, l, raised, target); err != nil {
				return err
			}
		}
		return nil
	})
}

// keepsMoving reports whether packets of a contract go out all the time. One
// here and there is a retransmission, or another connection of its own.
func keepsMoving(g *bpf.Generation, link int, id plan.ContractID) (bool, error) {
	const looks = 3
	before, err := g.Counter(link, id)
	if err != nil {
		return false, err
	}
	for range looks {
		time.Sleep(starveLook)
		now, err := g.Counter(link, id)
		if err != nil || now == before {
			return false, err
		}
		before = now
	}
	return true, nil
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

// letOut suspends strict order until what waits in the classes below a target is
// gone, one class after the other.
func letOut(g *bpf.Generation, l state.LinkRecord, raised plan.ContractID, target uint8) error {
	classes, err := tc.Counters(l.Index)
	if err != nil {
		return err
	}
	for _, c := range classes {
		if c.Class >= int(target) || c.Backlog == 0 {
			continue
		}
		restore, err := g.Herd(l.Index, l.Queue.Written(levelOf(l.Queue, c.Class)), raised)
		if err != nil {
			return err
		}
		for deadline := time.Now().Add(releaseTime); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			now, err := tc.Counters(l.Index)
			if err != nil || c.Class >= len(now) || drained(c, now[c.Class]) {
				break // or nobody can tell any more
			}
		}
		if err := restore(); err != nil {
			return err
		}
	}
	return nil
}

// drained reports that all that waited in a class has left: bucket by bucket, as
// those who join it are spread over all of them.
func drained(was, is tc.ClassCounters) bool {
	for i, b := range was.Buckets {
		if is.Buckets[i].Backlog > 0 && is.Buckets[i].Bytes < b.Bytes+b.Backlog {
			return false
		}
	}
	return true
}

// levelOf is a priority that the class carries.
func levelOf(q plan.Queue, class int) policy.Level {
	for level, c := range q.Map {
		if int(c) == class {
			return policy.Level(level)
		}
	}
	return 0
}

// raised are the contracts that a change puts into a more urgent class of a
// link, and that class.
func raised(have plan.State, w *plan.Want, link string) map[plan.ContractID]uint8 {
	before, after := have.Links[link], w.Links[link]
	up := map[plan.ContractID]uint8{}
	if before.Queue != after.Queue.Normal() {
		return up // another queue: nothing waits in it yet
	}
	for name, c := range w.Contracts {
		was := before.Queue.ClassOf(before.Rules.Contracts[have.Contracts[name].ID].Priority)
		is := after.Queue.ClassOf(after.Rules.Contracts[c.ID].Priority)
		if is > was {
			up[c.ID] = is
		}
	}
	return up
}

// releaseRaised lets out what waits below the contracts that a change raised.
// The first that finds a starving class lets all of it out, so that it ends soon
// however many there are.
func (c *change) releaseRaised(have plan.State, w *plan.Want) error {
	const enough = 16
	for _, link := range sortedKeys(w.Links) {
		n := 0
		for id, target := range raised(have, w, link) {
			if n++; n > enough {
				break
			}
			if err := c.release(c.generation, c.record.Links[link], id, target); err != nil {
				return err
			}
		}
	}
	return nil
}
