package fair

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestConforms(t *testing.T) {
	type packet struct {
		at, wire uint64 // ns, bytes
		passes   bool
	}
	for _, c := range []struct {
		name    string
		share   uint64 // bytes/s
		packets []packet
	}{
		{"a burst of 10 ms and one more", 300_000, []packet{
			{second, 1470, true}, {second, 1470, true}, {second, 1470, true}, {second, 1470, false},
		}},
		{"a packet of any size", 1000, []packet{
			{second, 65_536, true}, {2 * second, 1, false}, {66 * second, 1, false}, {67 * second, 1, true},
		}},
		{"no more than the burst is collected", 300_000, []packet{
			{second, 1500, true}, {3600 * second, 3000, true}, {3600 * second, 1, false},
		}},
		{"no share at all is a byte a second", 0, []packet{{second, 60, true}, {59 * second, 60, false}, {61 * second, 60, true}}},
		{"the clock began just now", 1_000_000, []packet{{1, 100, true}, {1, 100, false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := Bucket{Depth: Burst}
			for i, p := range c.packets {
				if got := k.Conforms(p.at, p.wire, price(c.share)); got != p.passes {
					t.Errorf("packet %d passes: %v", i, got)
				}
			}
		})
	}
}

// TestBucketKeepsItsShare offers any packets at any times: what passes is never more
// than the share of the time, the burst and one packet.
func TestBucketKeepsItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Uint64Range(1, MaxLimit).Draw(t, "share")
		start := rapid.Uint64Range(MaxDepth, MaxTime/2).Draw(t, "start")
		k := Bucket{Depth: legalDepth.Draw(t, "depth")}
		now, passed, last := start, uint64(0), uint64(0)
		for range rapid.IntRange(1, 100).Draw(t, "packets") {
			now += rapid.Uint64Range(0, second).Draw(t, "pause")
			wire := legalPacket.Draw(t, "wire")
			if k.Conforms(now, wire, price(share)) {
				passed, last = passed+wire, wire
			}
		}
		most := over(product(share, now-start+k.Depth), second)
		if passed-last > most.Uint64()+1 {
			t.Fatalf("%d bytes passed before the last packet, the share is %d", passed-last, most)
		}
	})
}

// TestChunksKeepTheShare is the same where chunks are paid at once. What is left of
// the last one is paid as well, and no packet needs to come for it.
func TestChunksKeepTheShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBudget(rapid.Uint64Range(MinLimit, MaxLimit).Draw(t, "limit"), 0)
		if rapid.Bool().Draw(t, "told") {
			b.Collect(rapid.Uint64Range(Segment, 1<<30).Draw(t, "burst"))
		}
		b.Spread(rapid.Uint64Range(1, 1<<13).Draw(t, "CPUs"))
		start := rapid.Uint64Range(MaxDepth, MaxTime/2).Draw(t, "start")
		k := Bucket{Depth: b.Depth, Slice: b.Slice}
		now, passed, charged, last := start, uint64(0), uint64(0), uint64(0)
		for range rapid.IntRange(1, 100).Draw(t, "packets") {
			now += rapid.Uint64Range(0, 2*k.Depth).Draw(t, "pause")
			wire := legalPacket.Draw(t, "wire")
			switch {
			case k.Prepaid(wire):
				passed += wire
			case k.Conforms(now, wire, b.Price):
				passed, last = passed+wire, wire
				charged += wire + k.Grant(now, b.Chunk)
			}
			if charged != passed+k.credit {
				t.Fatalf("%d bytes are charged, %d passed and %d are still to come", charged, passed, k.credit)
			}
		}
		if most := over(product(b.Limit, now-start+k.Depth), second); charged-last > most.Uint64()+1 {
			t.Fatalf("%d bytes are charged before the last packet, the share is %d", charged-last, most)
		}
	})
}

// TestBucketGivesItsShare offers more than the share in even packets: just more,
// where each that passes comes late, or so much that none does. The share may be the whole limit or, beside one flow, half of it.
func TestBucketGivesItsShare(t *testing.T) {
	const n = 20_000
	for _, limit := range []uint64{8, 8_000, 125_000, 1_250_000, MaxLimit} {
		for _, parts := range []uint64{1, 2} {
			for _, wire := range []uint64{64, 576, Segment, 65_536} {
				for _, per1000 := range []uint64{1010, 1100, 1250, 1500, 1990, 2000, 2500, 3000, 10_000} {
					share := limit / parts
					step := wire * second * 1000 / share / per1000
					if step < 20 {
						continue // ns: the clock does not resolve it
					}
					// A larger piece may be late for longer than the bucket collects, but not at twice the share.
					least := uint64(995)
					if wire > Segment && per1000 != 2000 {
						least = 500
					}
					k := Bucket{Depth: NewBudget(limit, 0).Depth}
					var passed uint64
					for i := range uint64(n) {
						if k.Conforms(second+i*step, wire, price(share)) {
							passed += wire
						}
					}
					if want := share * (n * step / microsecond) / (second / microsecond); passed < want*least/1000 {
						t.Errorf("limit %d, share %d, packets of %d, %d of 1000 offered: %d of %d bytes", limit, share, wire, per1000, passed, want)
					}
				}
			}
		}
	}
}

func TestBucketDoesNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, wire := legalTime.Draw(t, "now"), legalPacket.Draw(t, "wire")
		share := rapid.Uint64Range(0, MaxLimit).Draw(t, "share")
		k := Bucket{Depth: legalDepth.Draw(t, "depth")}
		k.Conforms(now, wire, price(share))
		paid := product(now-min(k.Depth, now), Fraction)
		cost := over(product(second, Fraction, One), max(share, 1))
		cost.Add(cost, wide(1)).Mul(cost, wide(wire)).Div(cost, wide(One))
		same(t, "paid", k.paid, paid.Add(paid, cost))
	})
}

// TestBurstPassesAtOnce: what a bucket was told to collect passes at once, whenever the limit's tick ends meanwhile, and is not
// repaid: it was left unused before.
func TestBurstPassesAtOnce(t *testing.T) {
	const burst, wire, apart = 512 << 10, 1442, 57_000 // ns
	for _, received := range []bool{false, true} {
		for phase := uint64(0); phase < 40; phase++ {
			b := NewBudget(32_000, 0)
			b.Received = received
			b.Collect(burst)
			flow, bucket := Flow{Exact: true}, Bucket{Depth: b.Depth, Slice: b.Slice}
			now := uint64(100*time.Second) + phase*b.Tick/40
			var passed uint64
			for bucket.Conforms(now, wire, b.Price) {
				b.Packet(&flow, now, wire)
				passed += wire
				now += apart
			}
			if passed < burst || passed > burst+2*wire+burst/100 {
				t.Errorf("received %v, phase %d: %d bytes passed at once, want %d", received, phase, passed, burst)
			}
			b.advance(now + b.Tick)
			if b.Trim != One {
				t.Errorf("received %v, phase %d: the burst is repaid: trim %d", received, phase, b.Trim)
			}
		}
	}
}
