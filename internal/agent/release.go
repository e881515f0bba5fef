package agent

import (
	"cmp"
	"maps"
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
	releases    = 3                      // attempts
)

// release lets the packets out that wait in starving classes below a target.
//
// A flow that is raised out of a starving class does not move by itself: its
// last packets still wait there, and TCP neither sends new ones while they are in
// a queue of this host (TCP small queues) nor retransmits them
// (tcp_retransmit_skb refuses what skb_still_in_host_queue). Under strict order
// that is for as long as the line stays full. So where nothing of the raised
// contract moves, all others that keep the line full join the starving class for a
// moment: what waits there goes out, and its acknowledgements set the flow free.
// They do not go by a lower class: what they leave in it would starve in turn.
//
// So does what they leave in this one. Of who has no right to go as early as what was
// raised it starves by right; of others it is dropped with the rest of the class, and
// TCP sends it again. done is true where anything was let out.
func (a *Agent) release(g *bpf.Generation, l state.LinkRecord, raised plan.ContractID, target uint8) (done bool, err error) {
	if !queues(l.Queue) {
		return false, nil
	}
	err = a.inScope(func() error {
		for range releases {
			classes, err := tc.Counters(l.Index)
			if err != nil || !waiting(classes, target) {
				return err
			}
			if moves, err := keepsMoving(g, l.Index, raised); err != nil || moves {
				return err
			}
			done = true
			if err := letOut(g, l, raised, target); err != nil {
				return err
			}
		}
		return nil
	})
	return done, err
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

// raised are the contracts that a change puts into a more urgent class of a
// link, and that class.
func raised(have plan.State, w *plan.Want, link string) map[plan.ContractID]uint8 {
	before, after := have.Links[link], w.Links[link]
	up := map[plan.ContractID]uint8{}
	if !before.Queue.Undivided().Equal(after.Queue.Undivided().Normal()) {
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

// releaseRaised lets out what waits below the contracts that a change raised, on each
// link once: what is let out for the one that was raised highest is for all.
func (c *change) releaseRaised(have plan.State, w *plan.Want) error {
	const enough = 16
	for _, link := range sortedKeys(w.Links) {
		up := raised(have, w, link)
		highest := slices.SortedFunc(maps.Keys(up), func(a, b plan.ContractID) int {
			return cmp.Or(cmp.Compare(up[b], up[a]), cmp.Compare(a, b))
		})
		for _, id := range highest[:min(enough, len(highest))] {
			done, err := c.release(c.generation, c.record.Links[link], id, up[id])
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
