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
	raised     rise
}

// joins reports whether the packets of a contract go elsewhere. Those that a class holds
// to a limit do not: it does not hold them there.
func (c *crowd) joins(id plan.ContractID) bool {
	written := c.rules.Contracts[id].Priority
	if n, ok := c.link.Queue.ShareOf(written); ok && c.link.Queue.Shares[n].Max != 0 {
		return false
	}
	return id != c.raised.id && c.busy[placeOf(c.link.Queue, written)]
}

// mayPass reports whether a contract has a right to go as early as what was raised.
func (c *crowd) mayPass(id plan.ContractID) bool {
	return c.link.Queue.ClassOf(c.rules.Contracts[id].Priority) >= c.raised.to
}

// letOut suspends strict order until what starves in the classes below a raised contract is
// gone, one class after the other.
func letOut(g *bpf.Generation, l state.LinkRecord, r rise) error {
	busy, starving, err := survey(l)
	if err != nil {
		return err
	}
	rules, err := readRules(g, l)
	if err != nil {
		return err
	}
	all := &crowd{g, l, rules, busy, r}
	for _, c := range starving {
		if c.Class >= int(r.to) {
			continue
		}
		behind, err := all.makeWay(c)
		if err == nil && behind {
			err = tc.Purge(l.Index, l.Queue, c.Class)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeWay has the crowd go elsewhere until what waited in a class has left. It reports
// whether somebody sent into it meanwhile who has a right to go as early as what was
// raised.
func (c *crowd) makeWay(class tc.ClassCounters) (behind bool, err error) {
	g, index, q := c.generation, c.link.Index, c.link.Queue
	before, err := g.Counters(index)
	if err != nil {
		return false, err
	}
	restore, err := g.Herd(index, func(id plan.ContractID) (uint32, bool) {
		to := 0
		if c.mayPass(id) {
			to = class.Class
		}
		return q.Written(levelOf(q, to)), c.joins(id)
	})
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
	for id := range c.rules.Contracts {
		if c.joins(id) && c.mayPass(id) && after[id] != before[id] {
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

// survey looks at a link for a moment. busy are the classes and shares in which packets waited
// at most looks: who has less to send than he may keeps nobody waiting. starving are the
// classes of which not all that waits will have left within the time for which strict
// order may be suspended.
func survey(l state.LinkRecord) (busy map[place]bool, starving []tc.ClassCounters, err error) {
	const looks = 8
	waited := map[place]int{}
	look := func(at place, backlog uint64) {
		if backlog > 0 {
			waited[at]++
		}
	}
	begin, every := time.Now(), min(stillness(l.Queue.Rate), releaseTime)/looks
	var first, last []tc.ClassCounters
	for range looks {
		if last, err = tc.Counters(l.Index); err != nil {
			return nil, nil, err
		}
		if first == nil {
			first = last
		}
		for _, c := range last {
			look(place{false, c.Class}, c.Backlog)
		}
		if len(l.Queue.Shares) > 0 {
			shares, err := tc.Shares(l.Index)
			if err != nil {
				return nil, nil, err
			}
			for n, s := range shares {
				look(place{true, n}, s.Backlog)
			}
		}
		time.Sleep(every)
	}
	took := time.Since(begin)
	busy = map[place]bool{}
	for at, n := range waited {
		busy[at] = n > looks/2
	}
	for i, c := range last {
		if leaves := float64(c.Bytes-first[i].Bytes) * float64(releaseTime) / float64(took); float64(c.Backlog) > leaves {
			starving = append(starving, c)
		}
	}
	return busy, starving, nil
}

// untilDrained waits until what waited in a class has left, for as long as the link sends
// anything and strict order may be suspended: what the crowd left in its own classes goes
// first.
func untilDrained(l state.LinkRecord, c tc.ClassCounters) {
	still, begin := stillness(l.Queue.Rate), time.Now()
	moved, last := begin, uint64(0)
	for time.Since(begin) < releaseTime && time.Since(moved) < still {
		time.Sleep(time.Millisecond)
		now, err := tc.Counters(l.Index)
		if err != nil || c.Class >= len(now) || drained(c, now[c.Class]) {
			return // or nobody can tell any more
		}
		if bytes := sent(now); bytes != last {
			moved, last = time.Now(), bytes
		}
	}
}

// sent is what all classes have sent.
func sent(classes []tc.ClassCounters) (bytes uint64) {
	for _, c := range classes {
		bytes += c.Bytes
	}
	return bytes
}

// drained reports that all that waited in a class has left: bucket by bucket, as
// those who join it are spread over all of them.
func drained(was, is tc.ClassCounters) bool {
	for b := range was.Buckets {
		if left(was, is, b) {
			return false
		}
	}
	return true
}

// left reports that some of what waited in a bucket of a class still does. One queue sends
// in order, so it is gone when as many bytes are. fq_codel has a queue for each flow, and
// takes turns, so what others sent into it later may be what has gone: there each queue
// that something waited in must have been empty since. One that is filled all the time
// is taken for one that was not, as the kernel does not count what a single queue sends.
func left(was, is tc.ClassCounters, bucket int) bool {
	for n := range was.Flows {
		if is.Flows[n] > 0 {
			return true
		}
	}
	if was.Flows != nil {
		return false
	}
	before, now := was.Buckets[bucket], is.Buckets[bucket]
	return before.Backlog > 0 && now.Backlog > 0 && now.Bytes < before.Bytes+before.Backlog
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
