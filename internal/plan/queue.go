package plan

import (
	"fmt"
	"reflect"

	"github.com/weir-net/weir/internal/policy"
)

// A Queue is the strict-order queueing of one link: what Weir builds at the
// root of a device, and what it reads back.
type Queue struct {
	Scheduler policy.Scheduler // never Auto; None is no qdisc of ours
	Rate      policy.Rate      // the root's shaping rate; 0: not shaped, the device itself is the bottleneck
	Classes   int              // number of classes, 1 to 16
	Offload   bool             // mqprio in hardware
	Leaf      Leaf             // the queue inside each class
	Buckets   int              // bfifo leaves of each class, among which HTB shares evenly; 0 and 1: one
	Map       ClassMap
	Shares    []Share // of htb: what single workloads are promised of the line, by number
	Weighs    bool    `json:",omitempty"` // of htb: a packet counts as what its length stands for (see [Waiting])
}

// Equal reports whether two queues are one.
func (q Queue) Equal(other Queue) bool { return reflect.DeepEqual(q, other) }

// A ClassMap says for each priority which class carries it. Class 0 is the
// least urgent, whatever number the kernel gives its band.
type ClassMap [policy.Levels]uint8

// A Leaf is the kind of queue inside a class.
type Leaf string

// The leaves of a class, best first; LeafFQ is taken only where packets wait for their times of
// departure. A bfifo is bounded in bytes, so that a class of
// 64 KiB super-packets holds milliseconds and not seconds.
const (
	LeafFQCodel Leaf = "fq_codel"
	LeafBFIFO   Leaf = "bfifo"
	LeafFQ      Leaf = "fq"
	LeafDefault Leaf = "" // the scheduler has no leaves of ours (fq)
)

// Handles of the qdiscs that are Weir's own: every root carries RootHandle, a
// scheduler below a shaper ShapedHandle, the leaf of class c LeafHandle+c, or
// LeafHandle+0x10*c+b where it is bucket b.
const (
	RootHandle   = 0x7e1f
	ShapedHandle = 0x7e20
	LeafHandle   = 0x7e30
)

// MinRate is the smallest root rate.
const MinRate = policy.MinRate

// ClassLimits are the fewest and the most classes that a scheduler can have: HTB
// has eight priorities, prio refuses a single band, fq has three bands where
// the kernel gave it any (and one class stands for an fq that does not order).
func ClassLimits(s policy.Scheduler) (least, most int) {
	switch s {
	case policy.HTB:
		return 1, HTBClasses
	case policy.Prio:
		return 2, policy.Levels
	case policy.ETS, policy.MQPrio:
		return 1, policy.Levels
	case policy.FQ:
		return 1, 3
	}
	return 0, 0
}

// Absent says that the link has no queue of ours.
func (q Queue) Absent() bool { return q.Scheduler == policy.None }

// Check says what makes a queue one that can not be built, or nil. It knows the
// schedulers, not the kernel and the device at hand.
func (q Queue) Check() error {
	if q.Absent() {
		return nil
	}
	least, most := ClassLimits(q.Scheduler)
	if most == 0 {
		return fmt.Errorf("scheduler %q can not be built", q.Scheduler)
	}
	if q.Classes < least || q.Classes > most {
		return fmt.Errorf("%s takes %d to %d classes, not %d", q.Scheduler, least, most, q.Classes)
	}
	if q.Scheduler == policy.FQ && q.Classes == 2 {
		return fmt.Errorf("fq takes 3 classes, one for each of its bands, or 1, not 2")
	}
	for p, c := range q.Map {
		if int(c) >= q.Classes {
			return fmt.Errorf("priority %d maps to class %d of %d", p, c, q.Classes)
		}
	}
	if q.Offload && q.Scheduler != policy.MQPrio {
		return fmt.Errorf("%s has no hardware form: only mqprio can be offloaded", q.Scheduler)
	}
	if q.Weighs && q.Scheduler != policy.HTB {
		return fmt.Errorf("%s counts what packets are, and only htb what they stand for", q.Scheduler)
	}
	if err := q.checkBuckets(); err != nil {
		return err
	}
	if err := q.checkShares(); err != nil {
		return err
	}
	return q.checkRate()
}

func (q Queue) checkBuckets() error {
	if q.Leaves() == 1 {
		return nil
	}
	if q.Scheduler != policy.HTB || q.Leaf != LeafBFIFO {
		return fmt.Errorf("only bfifo leaves of htb come in buckets")
	}
	if q.Buckets > MaxBuckets || q.Buckets&(q.Buckets-1) != 0 {
		return fmt.Errorf("%d buckets are no power of two up to %d", q.Buckets, MaxBuckets)
	}
	return nil
}

func (q Queue) checkShares() error {
	if len(q.Shares) > MaxShares {
		return fmt.Errorf("%d shares, at most %d are possible", len(q.Shares), MaxShares)
	}
	for i, s := range q.Shares {
		switch {
		case q.Scheduler != policy.HTB:
			return fmt.Errorf("%s has no shares: only htb has", q.Scheduler)
		case s == (Share{}):
		case s.Min < MinRate && (s.Min != 0 || s.Max == 0):
			return fmt.Errorf("share %d of %s is below %s", i, s.Min, MinRate)
		case s.Max != 0 && (s.Max < max(s.Min, MinRate) || s.Max > q.Rate):
			return fmt.Errorf("share %d is held to %s, of at least %s, at most %s", i, s.Max, max(s.Min, MinRate), q.Rate)
		case int(s.Class) >= q.Classes:
			return fmt.Errorf("share %d borrows as class %d of %d", i, s.Class, q.Classes)
		}
	}
	return nil
}

func (q Queue) checkRate() error {
	switch q.Scheduler {
	case policy.MQPrio, policy.FQ:
		if q.Rate != 0 {
			return fmt.Errorf("%s can not be shaped to a rate", q.Scheduler)
		}
		if q.Leaf != LeafDefault && (q.Scheduler != policy.FQ || q.Leaf != LeafFQ) {
			return fmt.Errorf("%s has no leaves of ours", q.Scheduler)
		}
		return nil
	case policy.HTB:
		if q.Rate == 0 {
			return fmt.Errorf("htb needs a rate")
		}
	}
	if q.Rate != 0 && q.Rate < MinRate {
		return fmt.Errorf("rate %s is below %s", q.Rate, MinRate)
	}
	if q.Leaf == LeafFQ && q.Rate == 0 {
		return nil
	}
	if q.Leaf != LeafBFIFO && q.Leaf != LeafFQCodel {
		return fmt.Errorf("%s needs a leaf of kind %s or %s, not %q", q.Scheduler, LeafFQCodel, LeafBFIFO, q.Leaf)
	}
	return nil
}

// Normal is the queue as the kernel holds it and gives it back: rates in whole
// bytes a second, no buckets where there is one, and nothing beside the
// scheduler where that is None.
func (q Queue) Normal() Queue {
	if q.Scheduler == policy.None || q.Scheduler == "" {
		return Queue{Scheduler: policy.None}
	}
	q.Rate -= q.Rate % 8
	var shares []Share
	for i, s := range q.Shares {
		s.Min, s.Max = s.Min-s.Min%8, s.Max-s.Max%8
		if s.Min != 0 && s.Max >= q.Rate {
			s.Max = 0 // the line holds it
		}
		if s != (Share{}) {
			shares = append(shares, make([]Share, i-len(shares))...)
			shares = append(shares, s)
		}
	}
	q.Shares = shares
	if q.Leaves() == 1 {
		q.Buckets = 0
	}
	return q
}

// SpreadOver maps the 16 priorities evenly to n classes, the usual map of the
// field: groups of four where there are four classes.
func SpreadOver(n int) ClassMap {
	var m ClassMap
	for p := range m {
		m[p] = uint8(p * n / policy.Levels)
	}
	return m
}

// A Qdisc names a root qdisc that is on a device, Weir's or not.
type Qdisc struct {
	Kind    string // "noqueue", "mq", "fq_codel", …
	Handle  uint32 // major number in the upper 16 bits, as tc prints it
	Default bool   // the kernel put it there by itself and would again
}
