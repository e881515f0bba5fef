package agent

import (
	"context"
	"os"
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

// BenchmarkSet changes the priority of this process back and forth.
func BenchmarkSet(b *testing.B) {
	t := newBench(b)
	t.apply(b, t.policyText("  gold: {match: [{port: 4000}], priority: 12}\n"))
	for i := 0; b.Loop(); i++ {
		if err := t.Set(context.Background(), uint32(os.Getpid()), policy.Priority{Default: policy.Level(10 + 5*(i%2))}); err != nil {
			b.Fatal(err)
		}
	}
}
