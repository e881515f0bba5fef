package tc

import (
	"cmp"
	"slices"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// HTB serves level by level, and only then by prio: first what is within the rate
// of its leaf, then of a share, and last what borrows from the line. A share
// sends within its rate even while the line is in debt, so nobody else can make
// it wait; the line takes what it sent from those who borrow.

// shareLeafRate is the guaranteed rate of a share's leaf in byte/s, the least that
// HTB takes: the guarantee is the share's. What a leaf sends within its own rate
// is charged to the share too, so the leaves' rates add nothing to it; they put a
// packet of each leaf (HTB forgives debts after a minute) before its turn.
const shareLeafRate = 1

// shareLeafBurst is what a leaf has in store for that packet, in bytes. HTB sends
// one of any size where there is something.
const shareLeafBurst = 1

// spare is the part of the line that the shaper has beyond it where shares come to
// all of it. HTB charges the line for what shares and the floors of leaves send, but
// can not hold them back; without spare its debt would grow for as long as all are
// busy, to a minute's worth (HTB remembers no more), and whoever borrows would then
// wait for that minute. At 100 Mbit/s floors came to 0.13 % where packets had 64 KiB.
const spare = 512

// allShared reports whether shares leave less of a line than the floors may take.
func allShared(q plan.Queue, rate uint64) bool {
	var sum uint64
	for _, s := range q.Shares {
		sum += uint64(s.Min) / 8
	}
	return sum > rate-rate/100
}

// shaperOf is the class that all of HTB's hang from. One that has spare has a ceil
// that no other has, by which it is known.
func shaperOf(q plan.Queue, rate uint64) htbClass {
	line := rate
	if allShared(q, rate) {
		rate += rate / spare
	}
	o := shaper(rate).options.(htbClass)
	o.inner = true
	if rate != line {
		o.ceil++
		o.cburst = ticks(burst(o.ceil), o.ceil)
	}
	return o
}

// lineOf is the rate of the line, in byte/s, that a shaper holds.
func lineOf(shaper htbClass) uint64 {
	if shaper.ceil == shaper.rate {
		return shaper.rate
	}
	return shaper.rate - shaper.rate/(spare+1)
}

// buildShares is what a queue has beside its classes, parents before their
// children.
func buildShares(q plan.Queue, rate uint64) []node {
	var nodes []node
	for n, s := range q.Shares {
		if s == (plan.Share{}) {
			continue
		}
		nodes = append(nodes, shareNode(q, n, rate))
		for b := range q.Leaves() {
			nodes = append(nodes, shareLeafNodes(q, n, b, rate)...)
		}
	}
	return nodes
}

// shareNode is the inner class that has the share. Its burst is as long as the
// shaper's, not as large, so that all shares that were idle take the line from
// urgent classes no longer than that together; what a packet overdraws, however
// large, a share repays. It loses only what it could not send for as long as
// that: timers are not so late, and HTB makes it wait for no packet of another,
// however large.
//
// A limit is its ceil, in store for which is a hundredth of a second at most: so a
// window of half a second has no more than a fiftieth above it. Without a share its rate
// is the floor of a class.
func shareNode(q plan.Queue, n int, rate uint64) node {
	s, b := q.Shares[n], ticks(burst(rate), rate)
	o := htbClass{rate: uint64(s.Min) / 8, ceil: rate, burst: b, cburst: b, quantum: quantumBase, inner: true}
	if s.Max != 0 {
		o.ceil = uint64(s.Max) / 8
		o.cburst = ticks(min(burst(o.ceil), o.ceil/limitStore), o.ceil)
	}
	if s.Min == 0 {
		o.rate = floorRate(rate, q.Leaves())
		o.burst = ticks(floorBurst, o.rate)
	}
	return node{class: true, kind: "htb", handle: shareClassID(n), parent: shaperClass, options: o}
}

// limitStore is the part of a second that a limit has in store at most.
const limitStore = 100

// shareLeafNodes are one leaf of a share and the queue in it. It borrows as a leaf
// of the share's class: in its turn, and by the same quantum. As it may have the
// whole line then, its queue has the room of a class's, or of a line that is as fast as
// the limit. Only an fq_codel is timed by what the share is sure of, as a frame may take
// that long.
func shareLeafNodes(q plan.Queue, n, bucket int, rate uint64) []node {
	s := q.Shares[n]
	drains := rate
	if s.Max != 0 {
		drains = uint64(s.Max) / 8
	}
	if q.Leaf == plan.LeafFQCodel && s.Min != 0 {
		drains = uint64(s.Min) / 8
	}
	queue := leaf(q, shareLeafHandle(n, bucket), shareLeafID(n, bucket), drains)
	if o, ok := queue.options.(bfifo); ok && s.Max != 0 {
		queue.options = bfifo{max(o.limit, limitRoom(drains, rate))}
	}
	if q.Weighs {
		queue.options = bfifo{waitingRoom(drains)}
	}
	id := shareLeafID(n, bucket)
	return []node{
		{class: true, kind: "htb", handle: id, parent: shareClassID(n), options: htbClass{
			rate: shareLeafRate, ceil: rate,
			burst: ticks(shareLeafBurst, shareLeafRate), cburst: ticks(burst(rate), rate),
			prio: prioOf(q, int(s.Class)), quantum: quantumOf(q, rate, int(s.Class), bucket),
		}},
		queue,
	}
}

// limitRoom is what a bfifo below a limit has to take at least. A line that is slow
// has long round trips, so that TCP learns to send small packets; a slow limit on a fast
// line has not: TCP goes by the shortest that it has seen, and hands down 64 KiB at once.
// So from 1 Mbit/s on, where that is half a second, one fits wherever the line's own
// leaves take it, which the turns of leaves are made for.
func limitRoom(limit, line uint64) uint32 {
	if limit < bandwidth1 {
		return 0
	}
	return min(gsoWire, bucketLimit(line))
}

// waitingRoom is the bound of a bfifo in which packets wait that stand for others: what they stand
// for may be as much as peers send at once, 2,770 full segments at least and four seconds of the limit.
func waitingRoom(limit uint64) uint32 { return uint32(min(max(4*limit, 4<<20), 1<<30)) }

// shareItself stands for the inner class where others have the number of a leaf.
const shareItself = -1

// ofShare says which share a class is part of, and which of its leaves it is, or
// shareItself; ok is false for what is no share's.
func (e entry) ofShare() (n, bucket int, ok bool) {
	if !e.isClass() || e.kind != "htb" || major(e.handle) != rootHandle {
		return 0, 0, false
	}
	if n, ok = plan.ShareOfInner(minor(e.handle)); ok {
		return n, shareItself, true
	}
	return plan.ShareOfMinor(minor(e.handle))
}

// recogniseShares fills in the shares of which there is a class.
func (all entries) recogniseShares(q *plan.Queue) error {
	count := 0
	for _, e := range all {
		if n, _, ok := e.ofShare(); ok {
			count = max(count, n+1)
		}
	}
	have := all.index()
	for n := range count {
		s, err := have.recogniseShare(*q, n)
		if err != nil {
			return err
		}
		if s != (plan.Share{}) {
			q.Shares = append(append(q.Shares, make([]plan.Share, n-len(q.Shares))...), s)
		}
	}
	return nil
}

// recogniseShare is the zero Share where there is none of it. Of one that has only
// leaves it makes the least that can be built, so that what is missing is named.
func (have index) recogniseShare(q plan.Queue, n int) (s plan.Share, err error) {
	for b := q.Leaves() - 1; b >= 0; b-- { // the first has the last word
		o, ok, err := have.htbClass(shareLeafID(n, b))
		if err != nil {
			return s, err
		}
		if ok {
			s = plan.Share{Min: plan.MinRate, Class: uint8(max(q.Classes-1-int(o.prio), 0))}
		}
	}
	o, ok, err := have.htbClass(shareClassID(n))
	if ok {
		s.Min = policy.Rate(o.rate * 8)
	}
	if ok && s.Min < plan.MinRate { // the floor of a limit alone
		s.Min, s.Max = 0, policy.Rate(o.ceil*8)
	}
	if ok && o.ceil < uint64(q.Rate)/8 {
		s.Max = policy.Rate(o.ceil * 8)
	}
	return s, err
}

// isShare reports whether a class is a share, and no leaf of one.
func (n node) isShare() bool {
	_, ok := plan.ShareOfInner(minor(n.handle))
	return ok && n.class
}

// owes reports whether the class of a limit alone, which has next to nothing of its own, is
// to have a share. HTB keeps debts as times, up to a minute, whatever becomes of the rate,
// and forgets them with the class.
func (n node) owes(have optionSet) bool {
	was, isClass := have.(htbClass)
	if !n.isShare() || !isClass {
		return false
	}
	const least = uint64(plan.MinRate) / 8
	return was.rate < least && n.options.(htbClass).rate >= least
}

// below is what hangs from a class: the leaves of a share, or the queue of a leaf.
func (all entries) below(top entry) (parts entries) {
	for _, e := range all {
		if e.parent == top.handle {
			parts = append(parts, e)
		}
	}
	return parts
}

// leaving is what does not belong, such that each can be deleted in its turn:
// qdiscs, and shares from the last on, a share's leaves before it. A class takes
// its qdisc along.
func leaving(unexpected entries) entries {
	all := unexpected.index()
	var qdiscs, classes entries
	for _, e := range unexpected {
		_, along := all[id{true, e.parent}]
		switch {
		case e.isClass():
			classes = append(classes, e)
		case !along:
			qdiscs = append(qdiscs, e)
		}
	}
	slices.SortFunc(classes, func(a, b entry) int {
		n, bucket, _ := a.ofShare()
		m, other, _ := b.ofShare()
		return cmp.Or(cmp.Compare(m, n), cmp.Compare(other, bucket))
	})
	return append(qdiscs, classes...)
}
