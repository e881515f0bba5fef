package tc

import (
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"pgregory.net/rapid"
)

func TestSizes(t *testing.T) {
	const kbit, Mbit, Gbit = 1000 / 8, 1_000_000 / 8, 1_000_000_000 / 8
	for _, test := range []struct {
		rate         uint64
		floor, burst uint64
		limit        uint32
		target       uint32
	}{
		{8 * kbit, 1, 3036, 24288, 2277000},
		{64 * kbit, 1, 3036, 24288, 284625},
		{Mbit, 1, 3036, 24288, 18216},
		{4 * Mbit, 5, 5000, 24288, 5000},
		{5 * Mbit, 6, 6250, 81920, 5000},
		{10 * Mbit, 12, 12500, 81920, 5000},
		{49 * Mbit, 61, 61250, 122500, 5000},
		{50 * Mbit, 62, 62500, 131072, 5000},
		{100 * Mbit, 125, 65536, 250000, 5000},
		{Gbit, 125, 250000, 2500000, 5000},
		{100 * Gbit, 125, 25000000, 250000000, 5000},
	} {
		target, interval := codelTimes(test.rate)
		if floorRate(test.rate, 1) != test.floor || burst(test.rate) != test.burst || limit(test.rate) != test.limit || target != test.target {
			t.Errorf("%d byte/s: floor %d, burst %d, limit %d, target %d, want %v",
				test.rate, floorRate(test.rate, 1), burst(test.rate), limit(test.rate), target, test)
		}
		if interval < 100_000 || interval < target {
			t.Errorf("%d byte/s: interval %d for target %d", test.rate, interval, target)
		}
	}
	if limit(0) != unshapedLimit {
		t.Errorf("unshaped limit %d", limit(0))
	}
}

// TestTurn: short on slow lines, and a frame on fast ones and where nobody knows.
func TestTurn(t *testing.T) {
	for rate, want := range map[uint64]uint32{0: 1514, 8_000: 300, 12_500_000: 300, 50_000_000: 1200, 125_000_000: 1514} {
		if got := turn(rate); got != want {
			t.Errorf("%d byte/s: %d bytes, want %d", rate, got, want)
		}
	}
}

// TestSizesAtAnyRate: what strict order rests on holds at every rate.
func TestSizesAtAnyRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Uint64Range(uint64(plan.MinRate)/8, 1e12/8).Draw(t, "rate")
		if _, most := plan.ClassLimits(policy.HTB); floorRate(rate, 1)*uint64(most)*100 > rate {
			t.Errorf("floors of %d byte/s take over 1 %% of %d", floorRate(rate, 1), rate)
		}
		if b := ticks(burst(rate), rate); b == 0 || b == 1<<32-1 {
			t.Errorf("burst of %d byte/s is %d ticks", rate, b)
		}
		if l := limit(rate); l < 16*frame || rate >= 50*bandwidth1 && l < 2*gsoPacket || rate >= 5*bandwidth1 && l < gsoWire {
			t.Errorf("limit of %d byte/s is %d", rate, l)
		}
	})
}

// TestBucketSizes: buckets share evenly only if a turn is worth any packet that
// they can hold, and like turns; all their floors are next to nothing.
func TestBucketSizes(t *testing.T) {
	for _, test := range []struct {
		rate           uint64
		quantum, limit uint32
		floor          uint64
	}{
		{10 * bandwidth1, 81920, 81920, 1},
		{50 * bandwidth1, 80 << 10, 131072, 7},
		{100 * bandwidth1, 80 << 10, 131072, 15},
		{1000 * bandwidth1, 80 << 10, 1250000, 15},
	} {
		if q, l, f := bucketQuantum(test.rate), bucketLimit(test.rate), floorRate(test.rate, 8); q != test.quantum || l != test.limit || f != test.floor {
			t.Errorf("%d byte/s: quantum %d, limit %d, floor %d, want %v", test.rate, q, l, f, test)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		features := plan.Features{Qdiscs: map[string]bool{"htb": true, "bfifo": true}}
		rate := policy.Rate(rapid.Uint64Range(uint64(plan.MinRate), 1e12).Draw(t, "rate"))
		rung, why := plan.Choose(policy.Link{Rate: rate, Scheduler: policy.Auto}, plan.Demand{}, plan.LinkFacts{}, features)
		if why != "" {
			t.Fatal(why)
		}
		q := rung.Queue.Normal()
		bytes := uint64(q.Rate) / 8
		if q.Leaves() > 1 && uint64(Floor(q))*plan.HTBClasses*10_000 > uint64(q.Rate)+8*80_000 {
			t.Errorf("%d buckets of %v have floors of %v a class", q.Leaves(), q.Rate, Floor(q))
		}
		for c := range q.Classes {
			for b := range q.Leaves() {
				quantum, first := quantumOf(q, bytes, c, b), quantumOf(q, bytes, c, 0)
				if q.Leaves() > 1 && (quantum < min(gsoPacket, bucketLimit(bytes)) || max(quantum, first)-min(quantum, first) > first/50) {
					t.Errorf("bucket %d of class %d at %v has quantum %d, the first %d, for packets of %d", b, c, q.Rate, quantum, first, bucketLimit(bytes))
				}
			}
		}
	})
}

// TestQuantumKeepsMap: the map survives in the quantums of the classes.
func TestQuantumKeepsMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := plan.Queue{Scheduler: policy.HTB, Rate: 8 * 125_000, Leaf: plan.LeafBFIFO}
		q.Classes = rapid.IntRange(1, 8).Draw(t, "classes")
		q.Buckets = rapid.SampledFrom([]int{0, 2, 4, 8}).Draw(t, "buckets")
		for p := range q.Map {
			q.Map[p] = uint8(rapid.IntRange(0, q.Classes-1).Draw(t, "class"))
		}
		nodes, err := build(q, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := dumped(nodes).recognise(); err != nil || !got.Equal(q) {
			t.Errorf("recognised %+v, %v, want %+v", got, err, q)
		}
	})
}
