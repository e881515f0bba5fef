package agent

import (
	"time"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// A crowd is who sends on a link while a raised contract stands still.
type crowd struct {
	generation *bpf.Generation
	link       state.LinkRecord
	rules      plan.LinkRules
	busy       map[place]bool
	raised     plan.ContractID
}

// joins reports whether the packets of a contract join the class that is let out. Those
// that a class holds to a limit do not: it does not hold them elsewhere.
func (c *crowd) joins(id plan.ContractID) bool {
	written := c.rules.Contracts[id].Priority
	if n, ok := c.link.Queue.ShareOf(written); ok && c.link.Queue.Shares[n].Max != 0 {
		return false
	}
	return id != c.raised && c.busy[placeOf(c.link.Queue, written)]
}

// letOut suspends strict order until what waits in the classes below a target is
// gone, one class after the other.
func letOut(g *bpf.Generation, l state.LinkRecord, raised plan.ContractID, target uint8) error {
	busy, err := busyPlaces(l)
	if err != nil {
		return err
	}
	rules, err := readRules(g, l)
	if err != nil {
		return err
	}
	classes, err := tc.Counters(l.Index)
	if err != nil {
		return err
	}
	all := &crowd{g, l, rules, busy, raised}
	for _, c := range classes {
		if c.Class >= int(target) || c.Backlog == 0 {
			continue
		}
		behind, err := all.join(c, target)
		if err == nil && behind {
			err = tc.Purge(l.Index, l.Queue, c.Class)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// join has the crowd join a class until what waited there is gone. It reports whether
// somebody sent meanwhile who has a right to go as early as the target.
func (c *crowd) join(class tc.ClassCounters, target uint8) (behind bool, err error) {
	g, index, q := c.generation, c.link.Index, c.link.Queue
	before, err := g.Counters(index)
	if err != nil {
		return false, err
	}
	restore, err := g.Herd(index, q.Written(levelOf(q, class.Class)), c.joins)
	if err != nil {
		return false, err
	}
	untilDrained(c.link, class)
	if err := restore(); err != nil {
		return false, err
	}
	after, err := g.Counters(index)
	if err != nil {
		return false, err
	}
	for id, p := range c.rules.Contracts {
		if c.joins(id) && q.ClassOf(p.Priority) >= target && after[id] != before[id] {
			return true, nil
		}
	}
	return false, nil
}

// A place is a class of a queue, or a share.
type place struct {
	share  bool
	number int
}

func placeOf(q plan.Queue, written uint32) place {
	if n, ok := q.ShareOf(written); ok {
		return place{true, n}
	}
	return place{false, int(q.ClassOf(written))}
}

// busyPlaces are the classes and shares in which packets waited at some look: who has
// less to send than he may keeps nobody waiting.
func busyPlaces(l state.LinkRecord) (map[place]bool, error) {
	const looks = 3
	busy := map[place]bool{}
	for range looks {
		classes, err := tc.Counters(l.Index)
		if err != nil {
			return nil, err
		}
		for _, c := range classes {
			busy[place{false, c.Class}] = busy[place{false, c.Class}] || c.Backlog > 0
		}
		if len(l.Queue.Shares) > 0 {
			shares, err := tc.Shares(l.Index)
			if err != nil {
				return nil, err
			}
			for n, s := range shares {
				busy[place{true, n}] = busy[place{true, n}] || s.Backlog > 0
			}
		}
		time.Sleep(time.Millisecond)
	}
	return busy, nil
}

// untilDrained waits until what waited in a class has left, for as long as anything
// does and strict order may be suspended.
func untilDrained(l state.LinkRecord, c tc.ClassCounters) {
	still := 5 * time.Millisecond
	if l.Queue.Rate != 0 {
		const packets = 2 * 8 * 64 << 10 // bits of what TCP hands down at once
		still += time.Duration(packets * uint64(time.Second) / uint64(l.Queue.Rate))
	}
	begin := time.Now()
	moved, last := begin, c.Bytes
	for time.Since(begin) < releaseTime && time.Since(moved) < still {
		time.Sleep(time.Millisecond)
		now, err := tc.Counters(l.Index)
		if err != nil || c.Class >= len(now) || drained(c, now[c.Class]) {
			return // or nobody can tell any more
		}
		if bytes := now[c.Class].Bytes; bytes != last {
			moved, last = time.Now(), bytes
		}
	}
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
