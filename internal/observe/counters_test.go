package observe

import (
	"testing"
	"time"

	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/testutil"
)

// The kernel's counters move with traffic, as the meter's do.
func TestCounters(t *testing.T) {
	testutil.Netns(t)
	startSink(t, testutil.Cgroup2(t), "127.0.0.1:7008")
	before, err := Counters{}.Read()
	if err != nil {
		t.Fatal(err)
	}
	s := newSource(t)
	s.send(200*time.Millisecond, "127.0.0.1:7008")
	after, err := Counters{}.Read()
	if err != nil {
		t.Fatal(err)
	}
	var runs uint64
	var busy time.Duration
	for _, c := range after.Since(before).CPUs {
		runs += c.Runs[cost.RX]
		busy += c.Busy
	}
	if sent := uint64(s.sent["127.0.0.1:7008"]); runs < sent/2 || busy < 50*time.Millisecond {
		t.Errorf("%d softirqs and %s for %d packets", runs, busy, sent)
	}
}
