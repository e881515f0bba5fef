package plan

import (
	"fmt"
	"slices"

	"github.com/weir-net/weir/internal/policy"
)

// Written is the skb->priority that puts a packet of a level into its class: the
// class id on HTB, whose leaves are told apart by it, and the level elsewhere.
// Of buckets it is the first; link_egress adds the flow's.
func (q Queue) Written(level policy.Level) uint32 {
	if q.Scheduler == policy.HTB {
		return RootHandle<<16 | q.ClassMinor(int(q.Map[level]), 0)
	}
	if q.Leaf == LeafFQ {
		return q.writtenOverFQ(level)
	}
	return uint32(level)
}

// ClassOf is the class of a written priority. What keeps its priority is taken
// to have none, as most packets do. A share is more urgent than any class; a limit
// alone is as its class.
func (q Queue) ClassOf(written uint32) uint8 {
	switch n, isShare := q.ShareOf(written); {
	case written == Keep:
		return q.Map[0]
	case isShare && q.Shares[n].Min == 0:
		return q.Shares[n].Class
	case isShare:
		return uint8(q.Classes)
	case written>>16 == RootHandle:
		class, ok := q.ofBand(written & 0xffff)
		if !ok {
			class, _, ok = q.OfMinor(written & 0xffff)
		}
		if !ok { // of a queue that is gone: htb's default
			return q.Map[0]
		}
		return uint8(class)
	}
	return q.Map[written%policy.Levels]
}

// Describe puts a written priority into words.
func (q Queue) Describe(written uint32) string {
	switch {
	case written == Keep:
		return "as it comes"
	case written>>16 == RootHandle:
		if n, ok := q.ShareOf(written); ok {
			return q.Shares[n].String()
		}
		if class, ok := q.ofBand(written & 0xffff); ok {
			return fmt.Sprintf("priority %d", slices.Index(q.Map[:], uint8(class)))
		}
		class, _, ok := q.OfMinor(written & 0xffff)
		if !ok || q.Scheduler != policy.HTB { // it was written for a queue that is gone
			return fmt.Sprintf("class %x:%x", written>>16, written&0xffff)
		}
		return fmt.Sprintf("class %d", class)
	}
	return fmt.Sprintf("priority %d", written)
}

// String puts a queue into words.
func (q Queue) String() string {
	if q.Scheduler == policy.None {
		return "its own qdisc"
	}
	text := fmt.Sprintf("%s with %d classes", q.Scheduler, q.Classes)
	if q.Offload {
		text += " in hardware"
	}
	if q.Rate != 0 {
		text += " at " + q.Rate.String()
	}
	if q.Leaf == LeafFQ && q.Scheduler != policy.FQ {
		text += " over fq"
	}
	if q.Leaf == LeafFQ {
		text += ", which keeps times of departure"
	}
	shares, limits := 0, 0
	for _, s := range q.Shares {
		if s.Min != 0 {
			shares++
		}
		if s.Max != 0 {
			limits++
		}
	}
	if shares > 0 {
		text += fmt.Sprintf(", %s of it in %s", sum(q.Shares), several(shares, "share"))
	}
	if limits > 0 {
		text += ", with " + several(limits, "limit")
	}
	return text
}

// several counts things: "1 share", "2 shares".
func several(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
