package tc

import (
	"fmt"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// AllClasses is the class of counters that stand for the whole link: fq does
// not count its bands apart.
const AllClasses = -1

// ClassCounters is what one of Weir's classes has sent and not sent since its
// qdisc was made. Packets are what the qdisc saw: a GSO packet counts once for
// every segment in it, except in Backlog's bytes and in Drops.
type ClassCounters struct {
	Class      int    // plan class, 0 the least urgent, or AllClasses
	Packets    uint64 // sent
	Bytes      uint64 // sent, with link headers
	Drops      uint64 // packets, by the leaf; the kernel's counter has 32 bits
	Backlog    uint64 // bytes that wait
	QueueLen   uint64 // packets that wait
	Overlimits uint64 // times that the class had to wait for its rate (htb) or could not take a packet (leaf)
	Requeues   uint64
	Buckets    [plan.MaxBuckets]Bucket // its leaves; without buckets the first alone
	Flows      map[uint32]uint64       // bytes in the queues of an fq_codel leaf in which some wait; nil without such a leaf
}

// A Bucket is what one leaf of a class has sent and not sent.
type Bucket struct {
	Bytes   uint64 // sent, with link headers
	Backlog uint64 // bytes that wait
}

// Counters reads the counters of Weir's classes in order; the error wraps
// [ErrForeign] where the root is not ours, and [ErrDrift] where a class or its
// leaf is missing.
func Counters(link int) ([]ClassCounters, error) {
	all, q, err := readQueue(link)
	if err != nil {
		return nil, err
	}
	out, err := all.counters(q)
	if err != nil {
		return nil, refuse(link, ErrDrift, "count classes: %v", err)
	}
	return out, nil
}

// readQueue is what is at a root of ours, and which queue it is.
func readQueue(link int) (entries, plan.Queue, error) {
	c, err := dial()
	if err != nil {
		return nil, plan.Queue{}, err
	}
	defer c.close()
	all, err := readEntries(c, link)
	if err != nil {
		return nil, plan.Queue{}, err
	}
	if root := all.root(); root.handle != rootHandle {
		return nil, plan.Queue{}, refuse(link, ErrForeign, "%s has no classes of Weir's", root)
	}
	q, err := all.recognise()
	return all, q, err
}

func (all entries) counters(q plan.Queue) ([]ClassCounters, error) {
	switch q.Scheduler {
	case policy.FQ:
		return []ClassCounters{ClassCounters{Class: AllClasses}.plus(all.root().stats)}, nil
	case policy.MQPrio:
		return all.queueCounters()
	}
	if q.Classes < 0 || q.Classes > policy.Levels {
		return nil, fmt.Errorf("%d classes are none of Weir's", q.Classes)
	}
	have, out := all.index(), make([]ClassCounters, q.Classes)
	for c := range out {
		out[c].Class = c
		for b := range q.Leaves() {
			class := uint32(0)
			if q.Scheduler == policy.HTB {
				class = htbClassID(q, c, b)
			}
			s, err := have.leafStats(leafHandle(q, c, b), class)
			if err != nil {
				return nil, err
			}
			out[c] = out[c].plus(s)
			out[c].Buckets[b] = Bucket{s.bytes, uint64(s.backlog)}
		}
	}
	if q.Leaf == plan.LeafFQCodel {
		all.countFlows(q, out)
	}
	return out, nil
}

// countFlows reads the queues of leaves that have one for each hash of a flow. The kernel
// shows them as classes, and does not count what they have sent.
func (all entries) countFlows(q plan.Queue, out []ClassCounters) {
	classes := make(map[uint32]int, len(out))
	for c := range out {
		out[c].Flows = map[uint32]uint64{}
		classes[leafHandle(q, c, 0)] = c
	}
	for _, e := range all {
		if c, ours := classes[major(e.handle)]; ours && e.isClass() && e.stats.backlog > 0 {
			out[c].Flows[minor(e.handle)] = uint64(e.stats.backlog)
		}
	}
}

// leafStats is what one leaf has sent and not sent; class is HTB's around it, 0
// where there is none.
func (have index) leafStats(leaf, class uint32) (stats, error) {
	qdisc, ok := have[id{false, leaf}]
	if !ok {
		return stats{}, fmt.Errorf("leaf %s is missing", handleString(leaf))
	}
	if class == 0 {
		return qdisc.stats, nil
	}
	// HTB's class knows when it had to wait; its drops lack what fq_codel
	// drops at dequeue, so those stay the leaf's.
	around, ok := have[id{true, class}]
	if !ok {
		return stats{}, fmt.Errorf("class %s is missing", handleString(class))
	}
	s := qdisc.stats
	s.packets, s.bytes, s.overlimits = around.stats.packets, around.stats.bytes, around.stats.overlimits
	return s, nil
}

// queueCounters sums the qdiscs of the TX queues of each traffic class. (The
// class dump has sums too, under ids that only mqprio gives out.)
func (all entries) queueCounters() ([]ClassCounters, error) {
	o, err := decodeMQPrio(all.root().options)
	if err != nil {
		return nil, err
	}
	mq := o.(mqprio)
	out := make([]ClassCounters, mq.classes)
	for c := range out {
		out[c].Class = c
		first := rootHandle + 1 + uint32(mq.queues[c].offset)
		for _, e := range all {
			if e.isQdisc() && e.parent >= first && e.parent < first+uint32(mq.queues[c].count) {
				out[c] = out[c].plus(e.stats)
			}
		}
	}
	return out, nil
}

func (c ClassCounters) plus(s stats) ClassCounters {
	c.Packets += s.packets
	c.Bytes += s.bytes
	c.Drops += uint64(s.drops)
	c.Backlog += uint64(s.backlog)
	c.QueueLen += uint64(s.qlen)
	c.Overlimits += uint64(s.overlimits)
	c.Requeues += uint64(s.requeues)
	return c
}
