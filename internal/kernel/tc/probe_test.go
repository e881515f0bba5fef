package tc

import (
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// TestProbe asks the test bench's own probes, which know of no options.
func TestProbe(t *testing.T) {
	testutil.Needs(t, "root")
	started := time.Now()
	has, unknown := Probe()
	took := time.Since(started)
	for kind, reason := range unknown {
		t.Errorf("%s is unknown: %s", kind, reason)
	}
	for _, kind := range Kinds() {
		want, err := feature.Has(kind + " qdisc")
		if err != nil {
			t.Fatal(err)
		}
		if has[kind] != want {
			t.Errorf("%s: probed %t, want %t", kind, has[kind], want)
		}
	}
	if has[FQBands] && !has["fq"] {
		t.Error("fq has bands, but there is no fq")
	}
	t.Logf("%v in %v", has, took)
}

func TestProbeIsQuick(t *testing.T) {
	testutil.Needs(t, "root")
	Probe() // loads the modules
	best := time.Hour
	for range 5 {
		started := time.Now()
		Probe()
		best = min(best, time.Since(started))
	}
	const bound = 500 * time.Millisecond // 2 ms on a real CPU, 90 in an emulated one
	if best > bound {
		t.Errorf("a probe takes %v", best)
	}
}
