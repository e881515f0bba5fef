package fair

import (
	"math"
	"testing"
	"time"
)

// A member is a bloc in a simulation: so many flows that count as weight.
type member struct {
	weight uint64
	n      int
	demand float64 // of each flow, bytes on the wire a second; 0: greedy
}

// gather opens the flows of blocs; those without a weight each count as one.
func (s *simulation) gather(rtt time.Duration, members ...member) (all [][]*sender) {
	for _, m := range members {
		b := s.budget
		if m.weight > 0 {
			b = s.budget.NewBloc(m.weight)
		}
		all = append(all, s.openIn(b, m.n, rtt, m.demand*mss/Segment))
	}
	return all
}

// parts are what each has of the limit from now until a time, and all together.
func (s *simulation) parts(all [][]*sender, until time.Duration) (parts []float64, sum float64) {
	var before [][]uint64
	for _, fs := range all {
		before = append(before, totals(fs))
	}
	length := (until - time.Duration(s.now)).Seconds()
	s.run(until)
	for i, fs := range all {
		part := since(fs, before[i]) / length / float64(s.budget.Limit)
		parts = append(parts, part)
		sum += part
	}
	return parts, sum
}

// TestWeights has blocs of all kinds beside each other.
func TestWeights(t *testing.T) {
	const L = hundredMbit
	for _, c := range []struct {
		name    string
		members []member
		want    []float64 // parts of the limit
	}{
		{"one flow each", []member{{3, 1, 0}, {1, 1, 0}}, []float64{.75, .25}},
		{"32 flows each", []member{{3, 32, 0}, {1, 32, 0}}, []float64{.75, .25}},
		{"1 against 32", []member{{3, 1, 0}, {1, 32, 0}}, []float64{.75, .25}},
		{"32 against 1", []member{{3, 32, 0}, {1, 1, 0}}, []float64{.75, .25}},
		{"alone", []member{{7, 1, 0}}, []float64{1}},
		{"alone, 32", []member{{7, 32, 0}}, []float64{1}},
		{"100 to 1", []member{{100, 2, 0}, {1, 2, 0}}, []float64{100. / 101, 1. / 101}},
		{"beside flows without", []member{{3, 4, 0}, {0, 3, 0}}, []float64{.5, .5}},
		{"1, 2, 3, 4", []member{{1, 8, 0}, {2, 4, 0}, {3, 2, 0}, {4, 1, 0}}, []float64{.1, .2, .3, .4}},
		{"the heavy one wants less", []member{{3, 4, .05 * L}, {1, 4, 0}}, []float64{.2, .8}},
		{"the light one wants less", []member{{3, 4, 0}, {1, 4, .025 * L}}, []float64{.9, .1}},
		{"two want less", []member{{3, 4, .05 * L}, {1, 4, 0}, {1, 2, .05 * L}}, []float64{.2, .7, .1}},
		{"all modest, more than its part", []member{{1, 8, .1 * L}, {1, 1, 0}}, []float64{.5, .5}},
		{"100, which wants little", []member{{100, 2, .05 * L}, {0, 2, 0}}, []float64{.1, .9}},
	} {
		for _, rtt := range []time.Duration{10 * time.Microsecond, time.Millisecond, 20 * time.Millisecond} {
			s := newSimulation(L)
			all := s.gather(rtt, c.members...)
			s.run(time.Second)
			parts, sum := s.parts(all, 6*time.Second)
			high := s.highest(time.Second, 6*time.Second)
			t.Logf("%s, %v: %.4f, sum %.4f, highest 100 ms %.3f", c.name, rtt, parts, sum, high)
			if math.Abs(sum-1) > 0.01 || high > 1.06 {
				t.Errorf("%s, %v: sum %.4f, highest %.3f", c.name, rtt, sum, high)
			}
			for i, want := range c.want {
				if math.Abs(parts[i]/want-1) > 0.03 {
					t.Errorf("%s, %v: %d has %.4f, want %.4f", c.name, rtt, i, parts[i], want)
				}
			}
		}
	}
}

// TestWeightsSettle has a bloc of weight 3 join and leave one of weight 1, at several
// limits.
func TestWeightsSettle(t *testing.T) {
	for _, c := range []struct {
		limit     uint64
		n, joined int
		rtt       time.Duration
	}{
		{hundredMbit / 10, 1, 1, time.Millisecond},
		{hundredMbit / 10, 4, 4, time.Millisecond},
		{hundredMbit, 1, 1, time.Millisecond},
		{hundredMbit, 32, 1, time.Millisecond},
		{hundredMbit, 1, 32, time.Millisecond},
		{hundredMbit, 32, 32, 20 * time.Millisecond},
		{10 * hundredMbit, 8, 8, time.Millisecond},
	} {
		s := newSimulation(c.limit)
		light := s.gather(c.rtt, member{1, c.n, 0})
		s.run(time.Second)
		heavy := s.gather(c.rtt, member{3, c.joined, 0})
		const joined, left, end = time.Second, 4 * time.Second, 6 * time.Second
		s.run(joined + settling)
		both := append(light, heavy...)
		parts, sum := s.parts(both, left)
		s.stop(heavy[0])
		s.run(left + settling)
		alone, _ := s.parts(light, end)
		grain := 2 * Segment * math.Sqrt(float64(c.n+c.joined)) / (float64(c.limit) * window.Seconds())
		started, stopped := s.settled(joined, left, grain), s.settled(left, end, grain)
		t.Logf("%+v: %.4f from %v after it joined, %.4f after it left; settled after %v and %v",
			c, parts, settling, alone, started, stopped)
		if math.Abs(sum-1) > 0.01 || math.Abs(parts[1]/parts[0]/3-1) > 0.03 || math.Abs(alone[0]-1) > 0.01 {
			t.Errorf("%+v", c)
		}
		if c.limit < hundredMbit && c.n > 1 {
			continue // a flow sends a packet every 39 ms: windows of 100 ms hold too few
		}
		if started > settling || stopped > settling {
			t.Errorf("%+v: settled after %v and %v", c, started, stopped)
		}
	}
}

// TestWeightsOfDatagrams floods one bloc with datagrams beside TCP in another.
func TestWeightsOfDatagrams(t *testing.T) {
	for _, c := range []struct {
		weight uint64 // of the datagrams
		within int    // TCP flows in their bloc
		want   float64
	}{{1, 0, .25}, {3, 0, .75}, {3, 2, .25}} {
		s := newSimulation(hundredMbit)
		flooded := s.budget.NewBloc(c.weight)
		s.openIn(flooded, c.within, time.Millisecond, 0)
		s.gather(time.Millisecond, member{4 - c.weight, 4, 0})
		passed := s.sendDatagrams(flooded)
		s.run(time.Second)
		before := *passed
		s.run(6 * time.Second)
		part := float64(*passed-before) / 5 / hundredMbit
		mean, high := s.rate(time.Second, 6*time.Second), s.highest(time.Second, 6*time.Second)
		t.Logf("%+v: datagrams have %.4f, mean %.4f, highest 100 ms %.3f", c, part, mean, high)
		if math.Abs(mean-1) > 0.01 || high > 1.02 || math.Abs(part/c.want-1) > 0.03 {
			t.Errorf("%+v", c)
		}
	}
}

// TestWeightIsIdleUntilItIsWanted has a bloc send one packet a second after its other
// flows have gone: what it leaves idle is not lost.
func TestWeightIsIdleUntilItIsWanted(t *testing.T) {
	s := newSimulation(hundredMbit)
	light := s.gather(time.Millisecond, member{1, 4, 0})
	heavy := s.budget.NewBloc(100)
	greedy := s.openIn(heavy, 8, time.Millisecond, 0)
	s.openIn(heavy, 1, time.Millisecond, 2*mss)
	s.run(2 * time.Second)
	s.stop(greedy)
	s.run(2*time.Second + settling)
	parts, _ := s.parts(light, 6*time.Second)
	after := s.settled(2*time.Second, 6*time.Second, 0)
	t.Logf("%.4f is left to others, after %v", parts, after)
	if parts[0] < 0.98 || after > settling {
		t.Error("a packet now and then keeps what it does not use")
	}
}

// TestBlocVotes has greedy flows vote in a bloc of weight 3, beside one flow in the limit.
func TestBlocVotes(t *testing.T) {
	const now = second
	for _, c := range []struct {
		flows       uint64
		used        uint64 // of each one's share, in 10 ms
		load, limit uint64 // votes in the bloc, and in its limit
		pace        uint64
	}{
		{1, 3 * 125_000 / 4, 3 * One, 4 * One, hundredMbit * 3 / 4},
		{2, 3 * 125_000 / 8, 6 * One, 4 * One, hundredMbit * 3 / 8},
		{30, 3 * 125_000 / 120, 90 * One, 4 * One, hundredMbit / 40},
		{1, 125_000 / 4, One, 2 * One, hundredMbit}, // a third of its share: what it leaves is anybody's
	} {
		b := NewBudget(hundredMbit, now)
		b.cast(&Flow{}, One, 9)
		bloc := b.NewBloc(3)
		flows := make([]Flow, c.flows)
		for i := range flows {
			flows[i] = Flow{used: c.used * 4 * One * c.flows, since: now - 10_000_000}
			bloc.Packet(&flows[i], now, Segment)
		}
		if near := func(got, want uint64) bool { return got >= want-want/100 && got <= want+want/100 }; !near(bloc.Load, c.load) || !near(b.Load, c.limit) || !near(bloc.Pace(&flows[0]), c.pace) {
			t.Errorf("%d flows: load %d in the bloc and %d in its limit, pace %d", c.flows, bloc.Load, b.Load, bloc.Pace(&flows[0]))
		}
	}
}
