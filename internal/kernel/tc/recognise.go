package tc

import (
	"math/bits"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// recognise is the queue that the tree at our root says it is. It takes the
// word of one place for each value; whether the rest agrees is for the caller
// to compare. An unknown kind is the zero Queue.
func (all entries) recognise() (plan.Queue, error) {
	root := all.root()
	o, err := decode(root)
	if err != nil {
		return plan.Queue{}, err
	}
	switch o := o.(type) {
	case htbRoot:
		return all.recogniseHTB(o)
	case prio, ets:
		return all.recogniseBands(o, 0), nil
	case mqprio:
		return plan.Queue{Scheduler: policy.MQPrio, Classes: o.classes, Offload: o.offload, Map: o.classMap}, nil
	case fq:
		return recogniseFQ(o), nil
	}
	return plan.Queue{}, nil
}

func (all entries) recogniseHTB(root htbRoot) (plan.Queue, error) {
	var rate policy.Rate
	if e, ok := all.find(true, shaperClass); ok {
		o, err := decodeHTBClass(e.options)
		if err != nil {
			return plan.Queue{}, err
		}
		rate = policy.Rate(lineOf(o.(htbClass)) * 8)
	}
	if e, ok := all.find(false, shapedHandle); ok {
		o, err := decode(e)
		if err != nil {
			return plan.Queue{}, err
		}
		return all.recogniseBands(o, rate), nil
	}
	q := plan.Queue{Scheduler: policy.HTB, Rate: rate, Leaf: all.leafKind(), Buckets: all.bucketCount(root), Weighs: all.root().sizeTable != nil}
	if err := all.recogniseClasses(&q); err != nil {
		return plan.Queue{}, err
	}
	if err := all.recogniseShares(&q); err != nil {
		return plan.Queue{}, err
	}
	return q, nil
}

// recogniseClasses fills in how many classes there are and which priorities
// they carry.
func (all entries) recogniseClasses(q *plan.Queue) error {
	known := *q
	known.Classes = policy.Levels // as far as the numbers go
	for _, e := range all {
		c, bucket, ok := known.OfMinor(minor(e.handle))
		if !e.isClass() || e.kind != "htb" || !ok {
			continue
		}
		o, err := decodeHTBClass(e.options)
		if err != nil {
			return err
		}
		class, width := o.(htbClass), mapBits(q.Leaves())
		q.Classes = max(q.Classes, c+1+int(class.prio))
		for set := class.quantum & (1<<width - 1); set != 0; set &= set - 1 {
			q.Map[bucket*width+bits.TrailingZeros32(set)] = uint8(c)
		}
	}
	return nil
}

// bucketCount takes the root's default class for its word on whether there are
// buckets, and the highest number among them for how many.
func (all entries) bucketCount(root htbRoot) int {
	q := plan.Queue{Classes: policy.Levels, Buckets: plan.MaxBuckets}
	if _, _, ok := q.OfMinor(root.class); !ok {
		return 0
	}
	highest := 1 // a lone bucket is what is left of more
	for _, e := range all {
		if _, bucket, ok := q.OfMinor(minor(e.handle)); ok && e.isClass() {
			highest = max(highest, bucket)
		}
	}
	return 1 << bits.Len(uint(highest))
}

func (all entries) recogniseBands(o optionSet, rate policy.Rate) plan.Queue {
	q := plan.Queue{Rate: rate, Leaf: all.leafKind()}
	var m bandMap
	switch o := o.(type) {
	case prio:
		q.Scheduler, q.Classes, m = policy.Prio, o.bands, o.bandMap
	case ets:
		q.Scheduler, q.Classes, m = policy.ETS, o.bands, o.bandMap
	}
	for p, band := range m {
		q.Map[p] = uint8(q.Classes-1) - band
	}
	return q
}

func recogniseFQ(o fq) plan.Queue {
	q := plan.Queue{Scheduler: policy.FQ, Classes: 1}
	if o.fqRoom == fqTimes() {
		q.Leaf = plan.LeafFQ
	}
	if !o.banded || o.bandMap == fqDefaultMap() {
		return q
	}
	q.Classes = fqBands
	for p, band := range o.bandMap {
		q.Map[p] = fqBands - 1 - band
	}
	return q
}

// leafKind is the kind of the first leaf of ours, of class 0's where there are
// buckets; bfifo where there is none, so that what is missing is named.
func (all entries) leafKind() plan.Leaf {
	for c := range policy.Levels {
		if e, ok := all.find(false, leafHandle(plan.Queue{}, c, 0)); ok {
			return plan.Leaf(e.kind)
		}
	}
	return plan.LeafBFIFO
}

// txQueues is how many TX queues our mqprio covers; 0 where there is none.
func (all entries) txQueues() int {
	if o, err := decode(all.root()); err == nil {
		if o, ok := o.(mqprio); ok {
			return o.queueCount()
		}
	}
	return 0
}
