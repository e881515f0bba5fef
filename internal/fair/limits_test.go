package fair

import (
	"fmt"
	"math"
	"testing"
	"time"
)

const (
	hundredMbit = 12_500_000 // bytes/s
	settling    = 300 * time.Millisecond
)

// TestLimitIsKept starts n greedy flows, and stops three quarters of them.
func TestLimitIsKept(t *testing.T) {
	for _, c := range shapes() {
		if why := c.impossible(); why != "" {
			t.Logf("%v is not simulated: %s", c, why)
			continue
		}
		if c.long() {
			continue // -all runs it
		}
		t.Run(c.String(), func(t *testing.T) { keepsLimit(t, c) })
	}
}

func keepsLimit(t *testing.T, c shape) {
	s := newSimulation(c.limit())
	from, to := c.warm(), c.warm()+c.measured()
	fs := s.open(c.n, c.rtt, 0)
	s.run(from)
	before := totals(fs)
	s.run(to)
	mean, fairness, high := s.rate(from, to), jain(fs, before), s.highest(from, to)
	started := s.settled(spread(c.n), to, c.grain())
	s.stop(fs[c.rest().n:])
	s.run(to + time.Second)
	stopped := s.settled(to, to+time.Second, c.grain())
	t.Logf("a packet of each every %v: first 100 ms %.2f, settled %v after the start, %v after the stop",
		c.interval().Round(10*time.Microsecond), s.rate(0, window), started, stopped)
	t.Logf("mean %.4f, highest 100 ms %.3f, jain %.4f", mean, high, fairness)

	round := c.packet() * float64(c.n) / (float64(c.limit()) * c.measured().Seconds())
	if math.Abs(mean-1) > 0.01+round {
		t.Errorf("mean %.4f", mean)
	}
	if fairness < 0.99 {
		t.Errorf("jain %.4f", fairness)
	}
	if c.interval() > 10*time.Millisecond {
		return // windows of 100 ms hold too few of its packets
	}
	if high > 1.02+c.grain() {
		t.Errorf("100 ms at %.3f", high)
	}
	if started > settling+c.slowStart() {
		t.Errorf("settled %v after the start", started)
	}
	if stopped > settling+c.rest().slowStart() {
		t.Errorf("settled %v after the stop", stopped)
	}
}

// TestWhatIsNotWantedIsShared has eight flows with little to send beside two greedy
// ones.
func TestWhatIsNotWantedIsShared(t *testing.T) {
	for _, c := range []struct{ demand, want float64 }{
		{0.1, 0.1},
		{0.5, 0.5},
		{0.9, 0.8}, // more than the tenth that is the share of each
	} {
		s := newSimulation(hundredMbit)
		modest := s.open(8, time.Millisecond, c.demand*hundredMbit/8*mss/Segment)
		greedy := s.open(2, time.Millisecond, 0)
		s.run(time.Second)
		modestBefore, greedyBefore := totals(modest), totals(greedy)
		s.run(6 * time.Second)
		got := since(modest, modestBefore) / 5 / hundredMbit
		mean, high, fairness := s.rate(time.Second, 6*time.Second), s.highest(time.Second, 6*time.Second), jain(greedy, greedyBefore)
		t.Logf("modest flows want %.1f and get %.4f; mean %.4f, highest 100 ms %.3f, jain of the greedy %.4f",
			c.demand, got, mean, high, fairness)
		if math.Abs(got-c.want) > 0.02 || math.Abs(mean-1) > 0.01 || high > 1.04 || fairness < 0.99 {
			t.Errorf("modest flows want %.1f", c.demand)
		}
	}
}

// TestBursts: flows whose applications write a tenth of the limit each, much now and then, leave the rest of it to greedy
// ones. Once they are greedy as well they have settled soon.
func TestBursts(t *testing.T) {
	for _, limit := range []uint64{hundredMbit, 10 * hundredMbit} {
		for _, every := range []time.Duration{3 * time.Millisecond, 8 * time.Millisecond, 17 * time.Millisecond, 30 * time.Millisecond, 48 * time.Millisecond, 90 * time.Millisecond} {
			for _, rtt := range []time.Duration{50 * time.Microsecond, time.Millisecond, 5 * time.Millisecond} {
				t.Run(fmt.Sprintf("%d Mbit, %v/%v, by turns", limit*8/1_000_000, every, rtt), func(t *testing.T) { leaves(t, limit, rtt, every, every/5) })
				t.Run(fmt.Sprintf("%d Mbit, %v/%v, at once", limit*8/1_000_000, every, rtt), func(t *testing.T) { leaves(t, limit, rtt, every, 0) })
			}
		}
	}
}

// leaves has five flows write every so often, apart by a time, beside two greedy ones.
func leaves(t *testing.T, limit uint64, rtt, every, apart time.Duration) {
	const begun, turned, end = 2 * time.Second, 7 * time.Second, 8 * time.Second
	s := newSimulation(limit)
	greedy, modest := s.open(2, rtt, 0), s.open(5, rtt, float64(limit)/10*mss/Segment)
	for i, f := range modest {
		f.every, f.phase = uint64(every), uint64(i)*uint64(apart)
	}
	s.run(begun)
	before := totals(greedy)
	s.run(turned)
	mean, fairness, high := s.rate(begun, turned), jain(greedy, before), s.highest(begun, turned)
	for _, f := range modest {
		f.demand, f.every = 0, 0
		s.arm(f, s.now)
	}
	s.run(end)
	turn, settled := s.highest(turned-window, end), s.settled(turned, end, 0)
	t.Logf("mean %.4f, highest 100 ms %.3f; all greedy: highest %.3f, settled after %v", mean, high, turn, settled)
	if mean < 0.98 || mean > 1.01 || fairness < 0.99 {
		t.Errorf("mean %.4f, jain of the greedy %.4f", mean, fairness)
	}
	if high > 1.1 || turn > 1.25 || settled > settling {
		t.Errorf("highest 100 ms %.3f and %.3f, settled after %v", high, turn, settled)
	}
}

// TestPause lets all flows be silent and start again.
func TestPause(t *testing.T) {
	for _, pause := range []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 10 * time.Second} {
		s := newSimulation(hundredMbit)
		fs := s.open(32, time.Millisecond, 0)
		s.run(2 * time.Second)
		s.stop(fs)
		again := 2*time.Second + pause
		s.run(again)
		s.resume(fs)
		s.run(again + 2*time.Second)
		first, high := s.rate(again, again+window), s.highest(again+2*window, again+2*time.Second)
		t.Logf("pause %v: first 100 ms %.3f, highest 100 ms from 200 ms on %.3f", pause, first, high)
		if first > 1.1 || high > 1.035 {
			t.Errorf("pause %v", pause)
		}
	}
}

// TestLateTimers stalls the sender's CPU for 30 ms ten times a second: the limit is
// kept, and what is delivered is at least what the CPU was there for.
func TestLateTimers(t *testing.T) {
	s := newSimulation(10 * hundredMbit)
	s.stalled = func(now uint64) uint64 {
		return 30_000_000 - min(now%100_000_000, 30_000_000)
	}
	s.open(32, time.Millisecond, 0)
	s.run(4 * time.Second)
	mean, high := s.rate(time.Second, 4*time.Second), s.highest(time.Second, 4*time.Second)
	t.Logf("mean %.3f, highest 100 ms %.3f", mean, high)
	if high > 1 || mean < 0.7 {
		t.Error("stalls are answered by bursts, or by giving up")
	}
}

// TestHugePackets has packets of 64 KiB where a flow's share is one in 168 ms.
func TestHugePackets(t *testing.T) {
	s := newSimulation(hundredMbit)
	s.huge = true
	fs := s.open(32, 10*time.Microsecond, 0)
	s.run(3 * time.Second)
	before := totals(fs)
	s.run(23 * time.Second)
	round := 32 * maxGSO * Segment / (20. * hundredMbit)
	mean, fairness := s.rate(3*time.Second, 23*time.Second), jain(fs, before)
	t.Logf("mean %.4f, jain %.4f", mean, fairness)
	if math.Abs(mean-1) > 0.01+round || fairness < 0.99 {
		t.Error("huge packets change the mean")
	}
}

// TestTab has 4 flows that send one segment at a time and keep a tab, for a moment each or until a jiffy has passed, and 4 that
// send 1 ms of their pace at once.
func TestTab(t *testing.T) {
	const limit = 10 * hundredMbit
	for _, jiffy := range []time.Duration{0, time.Millisecond, 4 * time.Millisecond, 10 * time.Millisecond} {
		s := newSimulation(limit)
		s.jiffy = uint64(jiffy)
		fs := s.open(8, time.Millisecond, 0)
		for _, f := range fs[:4] {
			f.small = true
		}
		s.run(time.Second)
		before := totals(fs)
		s.run(6 * time.Second)
		mean, high, fairness := s.rate(time.Second, 6*time.Second), s.highest(time.Second, 6*time.Second), jain(fs, before)
		onTab := float64(fs[0].onTab) / float64(fs[0].onTab+fs[0].charged)
		t.Logf("a jiffy of %s: mean %.4f, highest 100 ms %.3f, jain %.4f; %.2f of the packets went on the tab", jiffy, mean, high, fairness, onTab)
		if math.Abs(mean-1) > 0.01 || high > 1.02 || fairness < 0.999 || onTab < 0.5 {
			t.Errorf("a jiffy of %s: who pays with the next packet does not pay as much", jiffy)
		}
	}
}

// TestHierarchy has 4 flows below 10 Mbit/s of their own and 4 that have only the
// 100 Mbit/s of all.
func TestHierarchy(t *testing.T) {
	s := newSimulation(hundredMbit)
	s.inner = NewBudget(hundredMbit/10, 0)
	s.below = map[*sender]*Flow{}
	inner := s.open(4, time.Millisecond, 0)
	for _, f := range inner {
		s.below[f] = &Flow{}
	}
	outer := s.open(4, time.Millisecond, 0)
	s.run(time.Second)
	innerBefore, outerBefore := totals(inner), totals(outer)
	s.run(6 * time.Second)
	below := since(inner, innerBefore) / 5 / (hundredMbit * 0.1)
	above := since(outer, outerBefore) / 5 / (hundredMbit * 0.9)
	t.Logf("the inner limit is used to %.4f, the rest of the outer one to %.4f", below, above)
	if math.Abs(below-1) > 0.015 || math.Abs(above-1) > 0.015 {
		t.Error("a level does not hold")
	}
}

// TestDatagrams offers datagrams at almost twice the limit, 16 each ms, alone and
// beside four TCP flows.
func TestDatagrams(t *testing.T) {
	for _, n := range []int{0, 4} {
		s := newSimulation(hundredMbit)
		s.open(n, time.Millisecond, 0)
		passed := s.sendDatagrams(s.budget)
		s.run(time.Second)
		before := *passed
		s.run(6 * time.Second)
		share := float64(*passed-before) / 5 / hundredMbit * float64(n+1)
		mean, high := s.rate(time.Second, 6*time.Second), s.highest(time.Second, 6*time.Second)
		t.Logf("beside %d TCP flows: mean %.4f, highest 100 ms %.3f, datagrams have %.4f of their share", n, mean, high, share)
		if math.Abs(mean-1) > 0.01 || high > 1.02 || math.Abs(share-1) > 0.02 {
			t.Errorf("beside %d TCP flows", n)
		}
	}
}

// sendDatagrams starts the bursts and returns where the bytes that pass are counted.
func (s *simulation) sendDatagrams(b *Budget) *uint64 {
	flow := Flow{Exact: true}
	bucket := Bucket{Depth: b.Depth, Slice: b.Slice}
	var passed uint64
	var burst func()
	burst = func() {
		for range 16 {
			if bucket.Prepaid(Segment) {
				passed += Segment
				continue
			}
			if !bucket.Conforms(s.now, Segment, b.Price) {
				continue
			}
			passed += Segment
			b.Pace(&flow)
			granted := bucket.Grant(s.now, b.Chunk)
			s.charge(b, &flow, s.now, Segment)
			s.prepay(b, &flow, granted)
		}
		s.at(s.now+1_000_000, event{do: burst})
	}
	s.at(s.now, event{do: burst})
	return &passed
}

// TestStrayDatagram has a datagram now and then, of 86 bytes on the wire, beside TCP that fills the limit: with the first one
// its CPU is given what it may send from then on, and nobody has less for what nobody has sent.
func TestStrayDatagram(t *testing.T) {
	for _, limit := range []uint64{1_250_000, 6_250_000, hundredMbit, 10 * hundredMbit} {
		s := newSimulation(limit)
		s.open(1, 50*time.Microsecond, 0)
		s.run(time.Second)
		flow := Flow{Exact: true}
		bucket := Bucket{Depth: s.budget.Depth, Slice: s.budget.Slice}
		stray := func() {
			if !bucket.Prepaid(86) && bucket.Conforms(s.now, 86, s.budget.Price) {
				granted := bucket.Grant(s.now, s.budget.Chunk)
				s.budget.Pace(&flow)
				s.charge(s.budget, &flow, s.now, 86)
				s.budget.Prepay(&flow, granted)
			}
		}
		for n := range 20 {
			s.at(uint64(time.Second)+uint64(n)*37_000_000, event{do: stray})
		}
		s.run(2 * time.Second)
		low := s.lowest(time.Second, 2*time.Second)
		t.Logf("%d bytes/s: the lowest 100 ms have %.3f", limit, low)
		if low < 0.98 {
			t.Errorf("%d bytes/s: a datagram took %.3f of 100 ms from TCP", limit, 1-low)
		}
	}
}

// TestSwiftLimits has limits that timers can not keep. Who does not use all of one is never paced, and has what it has without. Who
// begins below one that it exceeds is paced once that is all sent: its first 100 ms have 4 % more for the 1/256 s, and what comes in
// a round trip of 32 such flows.
func TestSwiftLimits(t *testing.T) {
	const gbit = 10 * hundredMbit
	const begin, end = time.Second, 3 * time.Second // after a pause, as a limit begins
	for _, rtt := range []time.Duration{20 * time.Microsecond, 200 * time.Microsecond, time.Millisecond} {
		for _, c := range []struct {
			flows, limit int // Gbit/s
			paced        bool
		}{
			{1, 10, true}, {2, 10, true}, {32, 10, true}, {1, 20, true}, {32, 20, true}, {32, 100, true},
			{1, 60, false}, {1, 100, false},
		} {
			s := newSimulation(uint64(c.limit) * gbit)
			s.now = uint64(begin)
			fs := s.open(c.flows, rtt, 0)
			s.run(end)
			first, high, mean := s.rate(begin, begin+window), s.highest(begin+settling, end), s.rate(begin+settling, end)
			settled := s.settled(begin, end, 0)
			t.Logf("%v, %d flows, %d Gbit/s: first 100 ms %.3f, highest %.3f and mean %.3f after 300 ms, settled after %v", rtt, c.flows, c.limit, first, high, mean, settled)
			for _, f := range fs {
				if f.paced != c.paced {
					t.Fatalf("%v, %d flows, %d Gbit/s: one is paced: %v, want %v", rtt, c.flows, c.limit, f.paced, c.paced)
				}
			}
			if high > 1.02 || first > 1.08 {
				t.Errorf("%v, %d flows, %d Gbit/s: more than the limit", rtt, c.flows, c.limit)
			}
		}
	}
}
