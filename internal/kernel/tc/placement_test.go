package tc

import (
	"fmt"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// onLadder is the queue that plan's ladder gives a link of a rate and a number of
// TX queues where the policy names a scheduler.
func onLadder(t *testing.T, s policy.Scheduler, rate policy.Rate, txQueues int) plan.Queue {
	t.Helper()
	testutil.Needs(t, string(s)+" qdisc")
	has, _ := Probe()
	link := policy.Link{Scheduler: s, Rate: rate}
	rung, why := plan.Choose(link, plan.Demand{}, plan.LinkFacts{TXQueues: txQueues}, plan.Features{Qdiscs: has})
	if why != "" {
		t.Fatalf("%s at %v: %s", s, rate, why)
	}
	return rung.Queue
}

// TestPlacement sends with each of the 16 levels, one after the other: the class
// that the map gives it counts every packet, and no other class counts any.
func TestPlacement(t *testing.T) {
	const txQueues = 16
	for _, test := range []struct {
		scheduler policy.Scheduler
		rate      policy.Rate
		classes   int
	}{
		{policy.Prio, 0, 16},
		{policy.Prio, 1_000_000_000, 16},
		{policy.ETS, 0, 16},
		{policy.ETS, 1_000_000_000, 16},
		{policy.MQPrio, 0, 16},
		{policy.HTB, 1_000_000_000, 8},
	} {
		t.Run(fmt.Sprintf("%s %v", test.scheduler, test.rate), func(t *testing.T) {
			q := onLadder(t, test.scheduler, test.rate, txQueues)
			if q.Classes != test.classes {
				t.Fatalf("the ladder has %d classes, want %d", q.Classes, test.classes)
			}
			link, _ := wire(t, txQueues)
			if err := Apply(link.Index, q, Options{TXQueues: txQueues}); err != nil {
				t.Fatal(err)
			}
			for level, class := range q.Map {
				const packets = 20
				before := mustCount(t, link)
				sendUDP(t, link, q.Written(policy.Level(level)), packets, make([]byte, 100))
				for c, after := range atRest(t, link) {
					want := uint64(0)
					if c == int(class) {
						want = packets
					}
					if n := after.Packets - before[c].Packets; n != want {
						t.Errorf("level %d: class %d counts %d packets, want %d", level, c, n, want)
					}
				}
			}
		})
	}
}
