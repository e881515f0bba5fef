package agent

import (
	"slices"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// TestSwiftLimit has a stream below a limit that is faster than timers, and more than it sends: the kernel is told of no pace,
// so that the limit costs it nothing. It is of one that timers keep, from the next word on.
func TestSwiftLimit(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.iperfServer(t, 5201)
	b.apply(t, b.limited(group, "100Gbit"))
	start(t, b.here, dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5201", "--time", "60")
	untilBusy(t, b.rate)
	if paces := b.maxPaces(t); len(paces) == 0 || slices.Max(paces) != 0 {
		t.Errorf("below a limit of 100 Gbit/s streams may send %.0f bit/s", paces)
	}
	if j := b.judged(t); j.Verdict != plan.Kept {
		t.Errorf("the limit is %s: %s", j.Verdict, j.Evidence)
	}
	b.apply(t, b.limited(group, "8Gbit"))
	b.untilPaced(t, func(pace float64) bool { return pace > 7e9 && pace < 8e9 })
}
