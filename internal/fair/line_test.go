package fair

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand"
	"testing"
	"time"
)

// A receiver is one connection whose peer sends as much as it is asked for, and whose answers
// wait.
type receiver struct {
	Flow
	Line
	Way
	share, measured uint64
	latches         bool   // a shorter round trip counts at once for its kernel, as on 6.18
	rtt             uint64 // ns
	jitter          uint64 // ns: what a packet takes longer than half of that, in the mean; it is not there before the one before
	last            uint64 // when its latest packet is there
	every           uint64 // from the time at which its peer has so many bytes to the next, ns; 0: it always has
	bytes           uint64
	has             uint64 // that the peer has not sent
	flight          uint64 // bytes on their way, or not yet acknowledged
	waited          uint64 // ns: how much later than its line its last answer was
	got             uint64
}

// receivers are n connections whose peers have so many bytes every so often, or always.
func receivers(n int, limit uint64, rtt, every time.Duration, bytes uint64) (all []*receiver) {
	for range n {
		r := &receiver{rtt: uint64(rtt), Way: Way{uint64(rtt), uint64(rtt)}, measured: uint64(rtt), share: limit, every: uint64(every), bytes: bytes}
		r.Exact = true
		all = append(all, r)
	}
	return all
}

// receive simulates connections below a limit for a time, whose peers have sent ten segments before they are asked if they
// always have some, and returns what came in each slot of a time. begins is how long it takes until what each got counts.
func receive(limit uint64, all []*receiver, begins, over, slot time.Duration) (came []uint64) {
	type arrival struct {
		bytes  uint64
		to     *receiver
		answer bool   // it is back at the peer
		asked  uint64 // when the answer was made that asked for it; 0: none was
	}
	b, spacing, random := NewBudget(limit, 0), Spacing{}, rand.New(rand.NewSource(1))
	b.Received = true
	var queue events
	order := 0
	at := func(when uint64, do func()) {
		order++
		heap.Push(&queue, &event{at: when, order: order, do: do})
	}
	now := uint64(second) // a host is not that young
	begin := now
	var handle func(a arrival)
	way := func(r *receiver) uint64 {
		return r.rtt/2 + uint64(random.Int63n(int64(timerSlack))) + uint64(random.ExpFloat64()*float64(r.jitter))
	}
	send := func(r *receiver, asked uint64) {
		for most := Asks(r.share, r.Nearest); r.flight+2*Segment <= most && (r.every == 0 || r.has >= 2*Segment); r.flight += 2 * Segment {
			r.has -= min(r.has, 2*Segment)
			a := arrival{bytes: 2 * Segment, to: r, asked: asked}
			r.last = max(r.last, now+way(r))
			at(r.last, func() { handle(a) })
		}
	}
	handle = func(a arrival) {
		r := a.to
		if a.answer {
			r.flight -= a.bytes
			send(r, a.asked)
			return
		}
		slots := int((now - begin) / uint64(slot))
		for len(came) <= slots {
			came = append(came, 0)
		}
		came[slots] += a.bytes
		if now >= begin+uint64(begins) {
			r.got += a.bytes
		}
		r.Held = r.Holds(now, r.share)
		r.AppLimited = !r.Held // it was asked for more, and had none
		b.Packet(&r.Flow, now, a.bytes)
		r.Expect(now, a.bytes, r.share)
		leaves, waited := now, r.waited
		r.waited = 0
		if r.Due > now {
			leaves = spacing.Answer(r.Due, a.bytes*second/r.share, b.Cut(), Lag(r.share), waited)
			r.waited = leaves - r.Due
		}
		b.Stay(&r.Flow, leaves-now+r.Nearest)
		took := r.rtt
		if a.asked != 0 {
			took = now - a.asked
		}
		r.measured = r.measured - r.measured/8 + took/8
		if r.latches {
			r.measured = min(r.measured, took)
		}
		r.Window = r.measured
		r.Measure(r.measured, r.Late)
		r.Late = false
		r.share = b.Pace(&r.Flow)
		a.answer, a.asked = true, now
		at(leaves+way(r), func() { handle(a) })
	}
	for _, r := range all {
		if r.every > 0 {
			var more func()
			more = func() {
				r.has = min(r.has+r.bytes, sendBuffer)
				send(r, 0)
				at(now+r.every, more)
			}
			at(now+uint64(random.Int63n(int64(r.every))), more)
			continue
		}
		for range initialWindow / 2 {
			a := arrival{bytes: 2 * Segment, to: r}
			r.flight += a.bytes
			at(now+uint64(random.Int63n(int64(spread(len(all))))), func() { handle(a) })
		}
	}
	for len(queue) > 0 && queue[0].at <= begin+uint64(over) {
		e := heap.Pop(&queue).(*event)
		now = e.at
		e.do()
	}
	return came
}

// TestAnswersThatWait: connections whose answers wait have the limit within 1 %, by even parts, for any number of them, limit
// and round trip, though nobody paces their senders.
func TestAnswersThatWait(t *testing.T) {
	const slot, first, counted = 100 * time.Millisecond, 3, 5 // seconds
	for _, limit := range []uint64{1e6, 10e6, 100e6, 1e9} {
		for _, n := range []int{1, 8, 32} {
			for _, rtt := range []time.Duration{20 * time.Microsecond, time.Millisecond, 20 * time.Millisecond} {
				t.Run(fmt.Sprintf("%d flows, %g Mbit/s, %v", n, float64(limit)/1e6, rtt), func(t *testing.T) {
					limit := limit / 8
					pair := 2 * Segment / float64(limit)    // s, which two segments take
					turn := pair * float64(n)               // in which each has two
					begins := first + time.Duration(8*turn) // what they begin with is ten, which is five turns
					all := receivers(n, limit, rtt, 0, 0)
					came := receive(limit, all, 0, (begins+counted)*time.Second, slot)
					var bytes, most float64
					for i := int(begins * time.Second / slot); i < int((begins+counted)*time.Second/slot) && i < len(came); i++ {
						bytes, most = bytes+float64(came[i]), max(most, float64(came[i]))
					}
					rate := bytes / counted / float64(limit)
					sum, squares := 0.0, 0.0
					for _, r := range all {
						sum, squares = sum+float64(r.got), squares+float64(r.got)*float64(r.got)
					}
					index := sum * sum / float64(n) / squares
					highest := most / slot.Seconds() / float64(limit)
					t.Logf("%.4f of the limit, highest 100 ms %.3f, Jain's index %.4f", rate, highest, index)
					if math.Abs(rate-1) > 0.01+turn/counted {
						t.Errorf("%.4f of the limit", rate)
					}
					if index < 0.99 {
						t.Errorf("Jain's index %.4f", index)
					}
					if most := 1.02 + 2*pair/slot.Seconds(); highest > most {
						t.Errorf("a tenth of a second had %.3f of the limit, want at most %.3f", highest, most)
					}
				})
			}
		}
	}
}

// TestAnswersWaitLongEnough: who is now and then much further away than at best has the limit all the same, as a machine is that has to
// wait for its CPU; and who has pauses is not taken to be far away for that.
func TestAnswersWaitLongEnough(t *testing.T) {
	const limit, begins, over = 1_250_000, 3, 20 // s
	for _, latches := range []bool{false, true} {
		for jitter, want := range map[time.Duration]float64{time.Millisecond: 0.99, 2 * time.Millisecond: 0.99, 4 * time.Millisecond: 0.99, 8 * time.Millisecond: 0.99, 16 * time.Millisecond: 0.97} {
			t.Run(fmt.Sprintf("%v, latches %t", jitter, latches), func(t *testing.T) {
				all := receivers(1, limit, time.Millisecond, 0, 0)
				all[0].jitter, all[0].latches = uint64(jitter), latches
				receive(limit, all, begins*time.Second, over*time.Second, time.Second)
				rate := float64(all[0].got) / (over - begins) / limit
				t.Logf("%.3f of the limit, taken to be %v away", rate, time.Duration(all[0].Nearest))
				if rate < want || rate > 1.01 {
					t.Errorf("%.3f of the limit, want %.2f at least", rate, want)
				}
			})
		}
		t.Run(fmt.Sprintf("pauses, latches %t", latches), func(t *testing.T) {
			all := receivers(1, limit, time.Millisecond, 100*time.Millisecond, limit/20) // half of it, by ten bursts a second
			all[0].latches = latches
			receive(limit, all, 0, 10*time.Minute, time.Second)
			away := time.Duration(all[0].Nearest)
			t.Logf("taken to be %v away", away)
			if away > 20*time.Millisecond {
				t.Errorf("taken to be %v away", away)
			}
		})
	}
}

// TestWhoWaitsCounts: connections that begin with two segments each count from then on, though they get no more until their
// answers have left, which takes longer than votes stand.
func TestWhoWaitsCounts(t *testing.T) {
	const limit, n, half = 1_250_000, 32, Segment - 100 // a window is not quite two segments
	b := NewBudget(limit, second)
	var last uint64
	for i := range uint64(n) {
		f, l, now := Flow{Exact: true}, Line{}, second+i
		for range 2 {
			f.Held = l.Holds(now, b.Share())
			b.Packet(&f, now, half)
			l.Expect(now, half, limit/n)
			b.Stay(&f, l.Due-now)
		}
		last = l.Due
	}
	for now := uint64(second); now <= last; now += b.Tick {
		if b.advance(now); b.Load != n*One {
			t.Fatalf("%d of %d count after %d ms, when answers wait for %d", b.Load/One, n, (now-second)/1e6, (last-now)/1e6)
		}
	}
	for range 3 {
		last += b.Tick
		b.advance(last)
	}
	if b.Load != 0 {
		t.Errorf("%d count who have sent no more", b.Load/One)
	}
}

// TestAnswersOfWhoWantsLess: what connections do not use others have, whether they get a little all the time or much now
// and then.
func TestAnswersOfWhoWantsLess(t *testing.T) {
	const limit, rtt, begins, counted = 100e6 / 8, 50 * time.Microsecond, 2 * time.Second, 5 * time.Second
	for name, c := range map[string]struct {
		n     int
		every time.Duration
		bytes uint64  // each time
		used  float64 // of the limit, by all
	}{
		"0.1 each, smoothly":      {5, 2 * Segment * time.Second / (limit / 10), 2 * Segment, 0.99},
		"0.1 each, in pieces":     {5, 14 * Segment * time.Second / (limit / 10), 14 * Segment, 0.99},
		"0.1 each, in large ones": {5, 40 * Segment * time.Second / (limit / 10), 40 * Segment, 0.98},
		"0.01, requests":          {5, 2 * Segment * time.Second / (limit / 100), 2 * Segment, 0.99},
	} {
		greedy, modest := receivers(2, limit, rtt, 0, 0), receivers(c.n, limit, rtt, c.every, c.bytes)
		receive(limit, append(greedy, modest...), begins, begins+counted, time.Second)
		wanted := float64(c.bytes) / c.every.Seconds()
		var greeds, rest float64
		for _, r := range greedy {
			greeds += float64(r.got) / counted.Seconds() / limit
		}
		for _, r := range modest {
			got := float64(r.got) / counted.Seconds()
			rest += got / limit
			if math.Abs(got/wanted-1) > 0.02 {
				t.Errorf("%s: %.4f of what was wanted", name, got/wanted)
			}
		}
		t.Logf("%s: %.4f and %.4f of the limit", name, greeds, rest)
		if greeds+rest > 1.01 || greeds+rest < c.used {
			t.Errorf("%s: %.4f of the limit", name, greeds+rest)
		}
	}
}
