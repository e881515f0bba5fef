package bpf

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
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
				compareSums(t, limit, flows)
			})
		}
	}
}

func compareSums(t *testing.T, limit plan.Limit, flows int) {
	var kernel sumsObjects
	if err := loadSumsObjects(&kernel, nil); err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	if err := kernel.Budget.Put(uint32(0), newBudget(plan.Owner{}, amountOf(limit, plan.Owner{}))); err != nil {
		t.Fatal(err)
	}
	b := fair.NewBudget(uint64(limit.Max)/8, 0)
	if limit.Burst != 0 {
		b.Collect(uint64(limit.Burst))
	}
	bucket, streams := fair.Bucket{Depth: b.Depth}, fair.Bucket{Depth: b.Streams}
	all := make([]fair.Flow, flows)
	random := rand.New(rand.NewPCG(uint64(limit.Max), uint64(flows)))
	now := uint64(1)
	for step := range 5000 {
		now += pause(random)
		i := random.IntN(flows)
		f, wire, got, want := &all[i], 60+random.Uint64N(1<<uint(6+random.IntN(11))), uint64(0), uint64(0)
		switch random.IntN(4) {
		case 0:
			got = runSum(t, kernel.SumCharge, now, wire, i)
			b.Packet(f, now, wire)
			want = max(b.Load, fair.One) * b.Trim / fair.One
		case 1:
			f.Window = random.Uint64N(200e6)
			got = runSum(t, kernel.SumPace, now, f.Window, i)
			want = b.Pace(f)
		case 2:
			got = runSum(t, kernel.SumDatagram, now, wire, i)
			switch {
			case bucket.Prepaid(wire):
				want = 1
			case bucket.Conforms(now, wire, b.Price):
				b.Packet(f, now, wire+bucket.Grant(now, b.Chunk))
				want = 1
			}
		case 3:
			got = runSum(t, kernel.SumStream, now, wire, i)
			if streams.Conforms(now, wire, b.Price) {
				b.Packet(f, now, wire)
				want = 1
			}
		}
		if got != want {
			t.Fatalf("step %d at %d ns, flow %d: %d in the kernel, and %d here", step, now, i, got, want)
		}
	}
}

// What came before a pause counts for the window that the pause ends, and not for the
// next one.
func TestSumsOfWindow(t *testing.T) {
	testutil.Needs(t, "root", "BPF atomics")
	var kernel sumsObjects
	if err := loadSumsObjects(&kernel, nil); err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	if err := kernel.Budget.Put(uint32(0), newBudget(plan.Owner{}, amount{rate: 1e6})); err != nil {
		t.Fatal(err)
	}
	const second = 1e9
	for _, c := range []struct{ at, wire, last uint64 }{
		{10 * second, 1000, 0}, // the first window begins
		{11 * second, 199_000, 0},
		{20 * second, 300_000, 20_000},
		{25 * second, 1000, 60_000},
		{35 * second, 1000, 100},
	} {
		runSum(t, kernel.SumCharge, c.at, c.wire, 0)
		var b limitBudget
		if err := kernel.Budget.Lookup(uint32(0), &b); err != nil {
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

// runSum runs one step in the kernel.
func runSum(t *testing.T, p *ebpf.Program, now, value uint64, flow int) uint64 {
	t.Helper()
	step := binary.NativeEndian.AppendUint64(nil, now)
	step = binary.NativeEndian.AppendUint64(step, value)
	step = binary.NativeEndian.AppendUint64(step, uint64(flow))
	answer, err := p.Run(&ebpf.RunOptions{Data: step, Repeat: 1})
	if err != nil {
		t.Fatal(err)
	}
	return uint64(answer)
}
