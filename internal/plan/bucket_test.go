package plan

import (
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

// TestBuckets: slow lines have fewer, because each takes a byte a second from the
// urgent classes; other leaves have none.
func TestBuckets(t *testing.T) {
	for _, test := range []struct {
		rate policy.Rate
		leaf Leaf
		want int
	}{
		{1_000_000_000, LeafBFIFO, 8},
		{1_000_000_000, LeafFQCodel, 0},
		{5_120_000, LeafBFIFO, 8},
		{5_119_992, LeafBFIFO, 4},
		{2_000_000, LeafBFIFO, 2},
		{1_000_000, LeafBFIFO, 1},
		{MinRate, LeafBFIFO, 1},
	} {
		if got := bucketsFor(test.rate, test.leaf); got != test.want {
			t.Errorf("%v of %s: %d buckets, want %d", test.rate, test.leaf, got, test.want)
		}
	}
}

// TestClassMinor: every leaf has a number of its own that leads back to it, and
// that no root or shaper has.
func TestClassMinor(t *testing.T) {
	for _, buckets := range []int{0, 2, 4, 8} {
		q := Queue{Scheduler: policy.HTB, Classes: 8, Leaf: LeafBFIFO, Rate: 1e9, Buckets: buckets, Map: SpreadOver(8)}
		if err := q.Check(); err != nil {
			t.Error(err)
		}
		seen := map[uint32]bool{0: true, 1: true}
		for c := range q.Classes {
			for b := range q.Leaves() {
				minor := q.ClassMinor(c, b)
				class, bucket, ok := q.OfMinor(minor)
				if !ok || class != c || bucket != b || seen[minor] {
					t.Errorf("%d buckets: class %d bucket %d is %#x, and that is class %d bucket %d", buckets, c, b, minor, class, bucket)
				}
				seen[minor] = true
				if minor|q.BucketMask() != q.ClassMinor(c, q.Leaves()-1) && b == 0 && q.Leaves() > 1 {
					t.Errorf("%d buckets: %#x and the mask %#x lead out of class %d", buckets, minor, q.BucketMask(), c)
				}
				if got := q.ClassOf(RootHandle<<16 | minor); int(got) != c {
					t.Errorf("%d buckets: %#x is in class %d, want %d", buckets, minor, got, c)
				}
			}
		}
		for _, foreign := range []uint32{0, 1, 0x18 - 0x10*uint32(min(buckets, 1)), 0xffff} {
			if c, b, ok := q.OfMinor(foreign); ok {
				t.Errorf("%d buckets: %#x is class %d bucket %d", buckets, foreign, c, b)
			}
		}
	}
}

func TestBucketsCheck(t *testing.T) {
	good := Queue{Scheduler: policy.HTB, Classes: 8, Leaf: LeafBFIFO, Rate: 1e9, Buckets: 8, Map: SpreadOver(8)}
	for _, change := range []func(*Queue){
		func(q *Queue) { q.Buckets = 3 },
		func(q *Queue) { q.Buckets = 16 },
		func(q *Queue) { q.Leaf = LeafFQCodel },
		func(q *Queue) { q.Scheduler = policy.Prio },
	} {
		q := good
		if change(&q); q.Check() == nil {
			t.Errorf("%+v can be built", q)
		}
	}
	one := good
	one.Buckets = 1
	if n := one.Normal(); n.Buckets != 0 || one.Check() != nil {
		t.Errorf("one bucket is %+v, want none", n)
	}
}
