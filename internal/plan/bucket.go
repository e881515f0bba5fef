package plan

import "github.com/weir-net/weir/internal/policy"

// MaxBuckets is the most leaves that a class is divided into.
//
// Flows that share one bfifo do not share it evenly: TCP keeps what a flow has
// in a queue of this host to about a millisecond of its own pacing rate
// (tcp_small_queue_check), so nothing is lost, nobody slows down, and all keep
// the shares that they began with. Where the kernel has no fq_codel, a class of
// the htb rung is therefore several leaves among which HTB takes turns by
// bytes, and link_egress picks the leaf by the hash of the flow. Two flows meet
// in the same of eight by chance 1 in 8, and are then as uneven as in one.
const MaxBuckets = 8

// bucketsFor is how many buckets each class of an htb link can have. HTB refuses a
// guaranteed rate of less than a byte a second, which a more urgent class can
// not take: all together may not be more than a ten-thousandth of the line.
func bucketsFor(rate policy.Rate, l Leaf) int {
	if l != LeafBFIFO {
		return 0
	}
	n := MaxBuckets
	for n > 1 && policy.Rate(HTBClasses*n)*8*10_000 > rate {
		n /= 2
	}
	return n
}

// Leaves is the number of leaves of each class, at least 1.
func (q Queue) Leaves() int { return max(q.Buckets, 1) }

// Minor numbers of HTB's classes: 0x10 and up where class and leaf are one, and
// with buckets the class in the upper byte, from 1 on, and the bucket in the
// lower, so that tc shows both: 7e1f:803 is bucket 3 of class 7.
const (
	firstMinor  = 0x10
	bucketShift = 8
)

// ClassMinor is the minor number of the HTB class that is one leaf of a class.
func (q Queue) ClassMinor(class, bucket int) uint32 {
	if q.Leaves() == 1 {
		return firstMinor + uint32(class)
	}
	return uint32(class+1)<<bucketShift + uint32(bucket)
}

// OfMinor is the inverse of ClassMinor; ok is false for the minor number of
// anything but a leaf of the queue's.
func (q Queue) OfMinor(minor uint32) (class, bucket int, ok bool) {
	if class = int(minor) - firstMinor; q.Leaves() > 1 {
		class, bucket = int(minor>>bucketShift)-1, int(minor&(1<<bucketShift-1))
	}
	return class, bucket, class >= 0 && class < q.Classes && bucket < q.Leaves()
}

// BucketMask is what link_egress keeps of a flow's hash; 0: no buckets.
func (q Queue) BucketMask() uint32 { return uint32(q.Leaves() - 1) }
