package tc

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/plan"
)

// Handles and class ids as the kernel has them: the qdisc's number in the upper
// 16 bits, the class's in the lower. tc prints both in hexadecimal.
const (
	rootParent   = uint32(netlink.HANDLE_ROOT)
	clsactParent = uint32(netlink.HANDLE_CLSACT)
	clsactHandle = uint32(0xffff0000)

	rootHandle   = uint32(plan.RootHandle) << 16
	shapedHandle = uint32(plan.ShapedHandle) << 16
	shaperClass  = rootHandle | 1 // the class that all of HTB's hang from, or the one class of a shaper
)

// htbClassID is the id of the HTB class that is one leaf of plan class c. A packet
// whose skb->priority holds it goes there without a filter.
func htbClassID(q plan.Queue, c, bucket int) uint32 { return rootHandle | q.ClassMinor(c, bucket) }

// leafHandle is the handle of the qdisc in one leaf of plan class c.
func leafHandle(q plan.Queue, c, bucket int) uint32 {
	if q.Leaves() == 1 {
		return uint32(plan.LeafHandle+c) << 16
	}
	return uint32(plan.LeafHandle+0x10*c+bucket) << 16
}

// shareClassID is the id of the HTB class that has share n, shareLeafID that of one
// leaf below it, and shareLeafHandle the handle of the qdisc in there.
func shareClassID(n int) uint32        { return rootHandle | plan.ShareInner(n) }
func shareLeafID(n, bucket int) uint32 { return rootHandle | plan.ShareMinor(n, bucket) }
func shareLeafHandle(n, bucket int) uint32 {
	return uint32(plan.ShareHandle+plan.MaxBuckets*n+bucket) << 16
}

func major(h uint32) uint32 { return h &^ 0xffff }
func minor(h uint32) uint32 { return h & 0xffff }

func handleString(h uint32) string {
	if minor(h) == 0 {
		return fmt.Sprintf("%x:", h>>16)
	}
	return fmt.Sprintf("%x:%x", h>>16, minor(h))
}
