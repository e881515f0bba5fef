package fair

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestFirstSegmentsKeepTheLimit lets first segments pass at any times while they may: that is never more than the limit and a 128th
// of it gives in that time, what they may take at once, the last packet, and what others are longer than is kept in mind.
func TestFirstSegmentsKeepTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBudget(rapid.Uint64Range(MinLimit, MaxLimit).Draw(t, "limit"), 0)
		start := rapid.Uint64Range(0, MaxTime/2).Draw(t, "start")
		now, passed, last, f := start, uint64(0), uint64(0), Flow{}
		kept, forgotten := max(3*b.slack(), Newcomer), uint64(0) // of one packet
		longest := rapid.SampledFrom([]uint64{kept, MaxPacket}).Draw(t, "longest")
		for range rapid.IntRange(1, 1000).Draw(t, "packets") {
			now += rapid.Uint64Range(0, b.Tick*rapid.SampledFrom([]uint64{1, 1, 1, 100}).Draw(t, "ticks")).Draw(t, "pause")
			wire := min(legalPacket.Draw(t, "wire"), longest)
			if !b.Crowded(now) {
				b.Packet(&f, now, wire)
				passed, last = passed+wire, wire
				forgotten += wire - min(wire, kept)
			}
		}
		span := now - (start - start%b.Tick) // the tick of the first packet has begun before it
		most := over(product(b.Limit, span), second).Uint64()
		// The grain of times in a tick is a microsecond.
		if most += most/128 + b.atFirst() + forgotten + b.Limit/1_000_000 + 2; passed-last > most {
			t.Fatalf("%d bytes passed before the last packet in %d ns, the most is %d", passed-last, span, most)
		}
	})
}

// TestConnectionsOneAfterTheOther has each send its ten segments in one piece, as soon as that may pass.
func TestConnectionsOneAfterTheOther(t *testing.T) {
	const span = 100 * second
	for _, limit := range []uint64{8_000, 42_000, 125_000, 160_000, 1_250_000} { // bytes/s
		b, passed := NewBudget(limit, 0), uint64(0)
		for now := uint64(0); now < span; now += second / 1000 {
			if !b.Crowded(now) {
				b.Packet(new(Flow), now, Newcomer)
				passed += Newcomer
			}
		}
		if most := limit*span/second + limit*span/second/128 + b.atFirst() + Newcomer; passed > most {
			t.Errorf("%d bytes passed below %d bytes/s, the most is %d", passed, limit, most)
		}
	}
}

// TestFirstSegmentsPass has connections begin together: 32, and more where these are less of the limit than the 388 ms that they are
// below 10 Mbit/s. The first ten segments of each pass, and after a pause again; of many more they do not.
func TestFirstSegmentsPass(t *testing.T) {
	for _, c := range []struct {
		limit       uint64 // bytes/s
		connections int
		all         bool
	}{
		{8_000, 2, true}, {125_000, 32, true}, {1_250_000, 32, true}, {hundredMbit, 320, true},
		{8_000, 3, false}, {125_000, 33, false}, {1_250_000, 64, false}, {hundredMbit, 640, false},
	} {
		b := NewBudget(c.limit, 0)
		for n, begin := range []uint64{1, 10 * second} {
			all := true
			for range c.connections {
				for range initialWindow {
					all = all && !b.Crowded(begin)
					b.Packet(new(Flow), begin, Segment)
				}
			}
			if all != c.all {
				t.Errorf("%d connections below %d bytes/s, time %d: all pass: %v, want %v", c.connections, c.limit, n, all, c.all)
			}
		}
	}
}

// TestShortConnections has connections come and go, of eight segments each, by so many clients that do nothing else. What is refused
// is sent again after 200 ms, then twice that and so on, as TCP does. They have the limit, and no more. Beside flows that send all the
// time they have a share or more: each counts as a flow for as long as two packets like its own would take at its share.
func TestShortConnections(t *testing.T) {
	for _, c := range []struct {
		limit          uint64 // bytes/s
		clients, flows int
	}{
		{250_000, 8, 0}, {250_000, 8, 4}, {1_250_000, 8, 0}, {1_250_000, 8, 32}, {hundredMbit, 64, 0}, {hundredMbit, 64, 32},
	} {
		const from, to = 5 * time.Second, 25 * time.Second
		s := newSimulation(c.limit)
		s.open(c.flows, time.Millisecond, 0)
		passed := s.connectShortly(c.clients)
		s.run(from)
		before := *passed
		s.run(to)
		mean := s.rate(from, to)
		short := float64(*passed-before) / (to - from).Seconds() / float64(c.limit)
		t.Logf("%d bytes/s, %d clients beside %d flows: mean %.4f, of which short connections have %.4f", c.limit, c.clients, c.flows, mean, short)
		if mean > 1.02 || mean < 0.97 {
			t.Errorf("%d bytes/s, %d clients beside %d flows: mean %.4f", c.limit, c.clients, c.flows, mean)
		}
		if share := 1 / float64(c.flows+1); short < 0.9*share {
			t.Errorf("%d bytes/s, %d clients beside %d flows: short connections have %.4f, a share is %.4f", c.limit, c.clients, c.flows, short, share)
		}
	}
}

// connectShortly starts the clients and returns where the bytes that pass are counted.
func (s *simulation) connectShortly(clients int) *uint64 {
	const wire = 8 * Segment
	var passed uint64
	streams := Flow{Exact: true}
	bucket := Bucket{Depth: s.budget.Streams}
	for range clients {
		var ask func()
		own, waits := new(Flow), uint64(200_000_000)
		ask = func() {
			again := uint64(1_000_000)
			switch {
			case !s.budget.Crowded(s.now):
				s.charge(s.budget, own, s.now, wire)
				passed += wire
				own, waits = new(Flow), 200_000_000
			case bucket.Conforms(s.now, wire, s.budget.Price):
				s.budget.Pace(&streams)
				s.charge(s.budget, &streams, s.now, wire)
				passed += wire
				own, waits = new(Flow), 200_000_000
			default:
				again = waits + uint64(s.random.Int63n(20_000_000))
				waits *= 2
			}
			s.at(s.now+again, event{do: ask})
		}
		s.at(s.now+uint64(s.random.Int63n(1_000_000)), event{do: ask})
	}
	return &passed
}
