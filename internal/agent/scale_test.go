package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// manyWorkloads is a policy of n workloads of every kind that needs nothing on
// the host.
func manyWorkloads(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "  w%d:\n    match: [", i)
		switch i % 4 {
		case 0:
			fmt.Fprintf(&text, "{cgroup: /machine/c%d}", i)
		case 1:
			fmt.Fprintf(&text, "{port: %d, protocol: tcp}", 1+i)
		case 2:
			fmt.Fprintf(&text, "{cidr: 10.%d.%d.%d/32}", i>>16&0xff, i>>8&0xff, i&0xff)
		case 3:
			fmt.Fprintf(&text, "{user: %d}", 100000+i)
		}
		fmt.Fprintf(&text, "]\n    priority: %d\n", i%16)
	}
	return text.String()
}

// TestManyWorkloads applies a large policy, and says how long that took; the
// bound is the business of a benchmark.
func TestManyWorkloads(t *testing.T) {
	b := newBench(t)
	text := b.policyText(manyWorkloads(10_000))
	start := time.Now()
	if d := b.apply(t, text); len(d) != 10_001 {
		t.Fatalf("%d differences", len(d))
	}
	first := time.Since(start)
	start = time.Now()
	if d := b.apply(t, text); len(d) != 0 {
		t.Fatalf("again: %v", d[:min(len(d), 3)])
	}
	t.Logf("apply %v, again %v", first, time.Since(start))
}

// BenchmarkApply10000 applies 10,000 workloads to a host without any, the text
// read included: the bound is a second.
func BenchmarkApply10000(b *testing.B) {
	bench := newBench(b)
	text := bench.policyText(manyWorkloads(10_000))
	for b.Loop() {
		bench.apply(b, text)
		b.StopTimer()
		if err := bench.Reset(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkApplyAgain10000 applies 10,000 workloads that are applied already, as
// weir does it: the bound is 0.2 seconds.
func BenchmarkApplyAgain10000(b *testing.B) {
	bench := newBench(b)
	text := bench.policyText(manyWorkloads(10_000))
	bench.apply(b, text)
	for b.Loop() {
		if d := bench.apply(b, text); len(d) != 0 {
			b.Fatalf("%d differences", len(d))
		}
	}
}

// BenchmarkTop10000 takes one reading of 10,000 workloads.
func BenchmarkTop10000(b *testing.B) {
	bench := newBench(b)
	bench.apply(b, bench.policyText(manyWorkloads(10_000)))
	for b.Loop() {
		if _, err := bench.look(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
