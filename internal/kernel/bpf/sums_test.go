package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/weir-net/weir/internal/fair"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// TestSums runs the kernel's sums and those of package fair side by side, step by
// step: what was simulated is what runs.
func TestSums(t *testing.T) {
	testutil.Needs(t, "root", "BPF atomics")
	for _, limit := range []plan.Limit{
		{Max: 64e3}, {Max: 10e6}, {Max: 1e9}, {Max: 100e9},
		{Max: 64e3, Burst: 1 << 20}, {Max: 10e6, Burst: policy.MinBurst}, {Max: 100e9, Burst: policy.MinBurst}, {Max: 1e9, Burst: policy.MaxBurst},
	} {
		for _, flows := range []int{1, 3, 64} {
			t.Run(fmt.Sprintf("%v, %d flows", limit, flows), func(t *testing.T) {
				compareSums(t, plan.Owner{}, limit, flows, 0)
			})
		}
	}
}

// TestSumsOfBlocs has half of the flows in a bloc.
func TestSumsOfBlocs(t *testing.T) {
	testutil.Needs(t, "root", "BPF atomics")
	for _, limit := range []plan.Limit{{Max: 64e3}, {Max: 10e6}, {Max: 100e9}, {Max: 10e6, Burst: policy.MinBurst}} {
		for _, flows := range []int{2, 3, 64} {
			for _, weight := range []plan.Weight{1, 3, policy.MaxWeight} {
				t.Run(fmt.Sprintf("%v, %d flows, weight %d", limit, flows, weight), func(t *testing.T) {
					compareSums(t, plan.Owner{}, limit, flows, weight)
				})
			}
		}
	}
}

// TestSumsOfReceived is TestSums of what sockets receive.
func TestSumsOfReceived(t *testing.T) {
	testutil.Needs(t, "root", "BPF atomics")
	for _, limit := range []plan.Limit{{Max: 64e3}, {Max: 10e6}, {Max: 100e9}} {
		for _, flows := range []int{1, 64} {
			t.Run(fmt.Sprintf("%v, %d flows", limit, flows), func(t *testing.T) {
				compareSums(t, plan.Owner{Link: plan.AtSockets}, limit, flows, 0)
			})
		}
	}
}

// TestSumsOfLines is TestSums of when a line would have brought what came.
func TestSumsOfLines(t *testing.T) {
	testutil.Needs(t, "root", "BPF atomics")
	kernel := newSums(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, most := range []uint64{8000, 1e6, 12.5e9} {
		line, now := fair.Line{}, uint64(1)
		for n := range 3000 {
			now += pause(random) / 4
			wire, share := 60+random.Uint64N(1<<uint(6+random.IntN(11))), 1+random.Uint64N(most)
			due := line.Due
			line.Expect(now, wire, share)
			if got := runSum(t, kernel.SumLine, step{now, wire, share, due}); uint32(got) != uint32(line.Due-now) {
				t.Fatalf("step %d, %d bytes at %d ns, share %d: due in %d ns in the kernel, and in %d here", n, wire, now, share, int32(got), line.Due-now)
			}
		}
	}
}

// TestSumsOfSpacing is TestSums of when connections answer.
func TestSumsOfSpacing(t *testing.T) {
	testutil.Needs(t, "root", "BPF atomics")
	kernel := newSums(t)
	random := rand.New(rand.NewPCG(1, 2))
	steps := 0 // towards a turn that is much later than the last one
	for _, load := range []uint64{0, 1, 7, 1000} {
		b := newBudget(plan.Owner{Link: plan.AtSockets}, amount{rate: 10e6})
		b.Load = load * fair.One
		put(t, kernel.Budgets, 0, b)
		spacing, now := fair.Spacing{}, uint64(1)
		for n := range 3000 {
			now += random.Uint64N(4e6)
			share, took, due := 1+random.Uint64N(1<<uint(10+random.IntN(15))), random.Uint64N(20e6), now+random.Uint64N(10e6)
			waited := random.Uint64N(1 + fair.Lag(share))
			want := spacing.Answer(due, took, max(load, 1)*fair.One, fair.Lag(share), waited)
			if got := runSum(t, kernel.SumSpace, step{waited, took, share, due}); got != want-due {
				t.Fatalf("step %d, load %d, share %d: %d ns later in the kernel, and %d here", n, load, share, got, want-due)
			}
			if want-due == waited+100e6 {
				steps++
			}
		}
	}
	if steps < 100 {
		t.Errorf("%d answers of 12,000 come to their turn by a step: that is hardly compared", steps)
	}
}

// newSums loads the kernel's sums, for as long as a test runs.
func newSums(t *testing.T) *sumsObjects {
	t.Helper()
	kernel := new(sumsObjects)
	if err := loadSumsObjects(kernel, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kernel.Close() })
	return kernel
}

// A side is what both sums know of one budget.
type side struct {
	*fair.Budget
	bucket, streams fair.Bucket
	offers          fair.Offers
}

func sideOf(b *fair.Budget) side {
	return side{Budget: b, bucket: fair.Bucket{Depth: b.Depth, Slice: b.Slice}, streams: fair.Bucket{Depth: b.Streams}}
}

// compareSums has every other flow in a bloc, if that has a weight.
func compareSums(t *testing.T, of plan.Owner, limit plan.Limit, flows int, weight plan.Weight) {
	kernel := newSums(t)
	a := amountOf(limit, plan.Owner{})
	b := fair.NewBudget(uint64(limit.Max)/8, 0)
	if limit.Burst != 0 {
		b.Collect(uint64(limit.Burst))
	}
	b.Spread(cpus())
	b.Received = of.Link == plan.AtSockets
	sides, budgets := []side{sideOf(b)}, []limitBudget{newBudget(of, a)}
	if weight != 0 {
		a.weight, a.within = weight, 1 // the map of the sums knows nothing of the number
		sides, budgets = append(sides, sideOf(b.NewBloc(uint64(weight)))), append(budgets, newBudget(plan.Owner{Member: plan.FirstID}, a))
	}
	for i, b := range budgets {
		put(t, kernel.Budgets, uint32(i), b)
	}
	all := make([]fair.Flow, flows)
	for i := range all {
		// Some are held to their share by something else.
		all[i].Exact, all[i].Held, all[i].Fills, all[i].AppLimited = i%3 == 1, i%6 == 1, i%9 == 4, i%2 == 0
		if err := kernel.Flow.Put(uint32(i), sumsFlow{Exact: flag(all[i].Exact), Held: heldAs(all[i]), AppLimited: flag(all[i].AppLimited)}); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(uint64(limit.Max), uint64(flows)))
	now := uint64(1)
	for n := range 5000 {
		now += pause(random)
		i := random.IntN(flows)
		s := step{now, 60 + random.Uint64N(1<<uint(6+random.IntN(11))), uint64(i), uint64(i % len(sides))}
		got, want := sides[s.bloc].compare(t, kernel, &all[i], s, random.IntN(8), random)
		if got != want {
			t.Fatalf("step %d at %d ns, flow %d: %d in the kernel, and %d here", n, now, i, got, want)
		}
	}
	for i, f := range all {
		var k sumsFlow
		if err := kernel.Flow.Lookup(uint32(i), &k); err != nil {
			t.Fatal(err)
		}
		if uint64(k.Measured) != f.Measured {
			t.Errorf("flow %d used %d in the kernel, and %d here", i, k.Measured, f.Measured)
		}
	}
}

// compare takes one step of some kind with both sums, and returns what each says.
func (b *side) compare(t *testing.T, kernel *sumsObjects, f *fair.Flow, s step, kind int, random *rand.Rand) (got, want uint64) {
	now, wire := s.now, s.value
	switch kind {
	case 0:
		got = runSum(t, kernel.SumCharge, s)
		b.Packet(f, now, wire)
		want = b.Cut()
	case 1:
		f.Window = random.Uint64N(200e6)
		s.value = f.Window
		got = runSum(t, kernel.SumPace, s)
		want = b.Pace(f)
	case 2:
		got = runSum(t, kernel.SumDatagram, s)
		switch {
		case b.bucket.Prepaid(wire):
			want = 1
		case b.bucket.Conforms(now, wire, b.Price):
			granted := b.bucket.Grant(now, b.Chunk)
			b.Packet(f, now, wire)
			b.Prepay(f, granted)
			want = 1
		}
	case 3:
		got = runSum(t, kernel.SumStream, s)
		if b.streams.Conforms(now, wire, b.Price) {
			b.Packet(f, now, wire)
			want = 1
		}
	case 4:
		got = runSum(t, kernel.SumOffer, s)
		want = b.offers.Segments(now, b.Limit, b.Streams)
	case 5:
		s.value = random.Uint64N(200e6)
		got = runSum(t, kernel.SumStay, s)
		b.Stay(f, s.value)
		want = b.Load
	case 6:
		got = runSum(t, kernel.SumCrowd, s)
		if b.Crowded(now) {
			want = 1
		}
	case 7:
		got = runSum(t, kernel.SumBind, s)
		if b.Binds(now) {
			want = 1
		}
	}
	return got, want
}

// TestSumsAtOnce has two CPUs charge one flow at the same times, as senders of datagrams do: it has one vote, in its bloc
// and in the limit.
func TestSumsAtOnce(t *testing.T) {
	testutil.Needs(t, "root", "BPF atomics")
	for _, weight := range []plan.Weight{0, 1, 7} {
		t.Run(fmt.Sprintf("weight %d", weight), func(t *testing.T) {
			kernel := newSums(t)
			a := amount{rate: 1e6}
			last := uint64(0) // the budget that has the flow
			put(t, kernel.Budgets, 0, newBudget(plan.Owner{}, a))
			if weight != 0 {
				a.weight, a.within, last = weight, 1, 1
				put(t, kernel.Budgets, 1, newBudget(plan.Owner{Member: plan.FirstID}, a))
			}
			steps := 5000
			if testing.Short() {
				steps = 500
			}
			now := uint64(1e9)
			for n := range steps {
				now += 5e6 // beyond a tick, so that each step may vote
				s := step{now: now, value: 6000, bloc: last}
				atOnce(func() {
					if _, err := kernel.SumCharge.Run(s.options()); err != nil {
						t.Error(err)
					}
				})
				var b limitBudget
				var f sumsFlow
				if err := errors.Join(kernel.Budgets.Lookup(uint32(last), &b), kernel.Flow.Lookup(uint32(0), &f)); err != nil {
					t.Fatal(err)
				}
				if b.Load != f.Vote {
					t.Fatalf("step %d: the flow votes %d, and all of them %d", n, f.Vote, b.Load)
				}
				if weight == 0 {
					continue
				}
				var up limitBudget
				if err := kernel.Budgets.Lookup(uint32(0), &up); err != nil {
					t.Fatal(err)
				}
				if up.Load != b.Vote.Vote {
					t.Fatalf("step %d: the bloc votes %d, and all in its limit %d", n, b.Vote.Vote, up.Load)
				}
			}
		})
	}
}

// put puts a budget into the map of the sums.
func put(t *testing.T, budgets *ebpf.Map, number uint32, b limitBudget) {
	t.Helper()
	if err := budgets.Put(number, b); err != nil {
		t.Fatal(err)
	}
}

// atOnce runs fn by two threads at the same moment.
func atOnce(fn func()) {
	var ready atomic.Int32
	var done sync.WaitGroup
	for range 2 {
		done.Go(func() {
			for ready.Add(1); ready.Load() < 2; {
				runtime.Gosched()
			}
			fn()
		})
	}
	done.Wait()
}

// What came before a pause counts for the window that the pause ends, and not for the
// next one.
func TestSumsOfWindow(t *testing.T) {
	testutil.Needs(t, "root", "BPF atomics")
	kernel := newSums(t)
	put(t, kernel.Budgets, 0, newBudget(plan.Owner{}, amount{rate: 1e6}))
	const second = 1e9
	for _, c := range []struct{ at, wire, last uint64 }{
		{10 * second, 1000, 0}, // the first window begins
		{11 * second, 199_000, 0},
		{20 * second, 300_000, 20_000},
		{25 * second, 1000, 60_000},
		{35 * second, 1000, 100},
	} {
		runSum(t, kernel.SumCharge, step{now: c.at, value: c.wire})
		var b limitBudget
		if err := kernel.Budgets.Lookup(uint32(0), &b); err != nil {
			t.Fatal(err)
		}
		if b.Last != c.last {
			t.Errorf("at %d s: %d bytes a second in the last window, want %d", c.at/second, b.Last, c.last)
		}
	}
}

// pause is the time to the next step: mostly that of packets, now and then a
// stall, and seldom a real pause.
func pause(random *rand.Rand) uint64 {
	switch random.IntN(100) {
	case 0:
		return random.Uint64N(5e9)
	case 1, 2, 3:
		return random.Uint64N(1e9)
	}
	return random.Uint64N(1 << uint(8+random.IntN(16)))
}

// A step is what the sums are handed in as a packet.
type step struct{ now, value, flow, bloc uint64 }

func (s step) options() *ebpf.RunOptions {
	var data []byte
	for _, v := range []uint64{s.now, s.value, s.flow, s.bloc} {
		data = binary.NativeEndian.AppendUint64(data, v)
	}
	return &ebpf.RunOptions{Data: data, Repeat: 1}
}

// runSum runs one step in the kernel.
func runSum(t *testing.T, p *ebpf.Program, s step) uint64 {
	t.Helper()
	answer, err := p.Run(s.options())
	if err != nil {
		t.Fatal(err)
	}
	return uint64(answer)
}

// heldAs is how the kernel has it that a flow is held back, or fills what it asks for.
func heldAs(f fair.Flow) uint8 {
	if f.Fills {
		return 2
	}
	return flag(f.Held)
}
