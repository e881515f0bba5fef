package tc

import (
	"sync"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// TestStrict floods a link with two priorities at once: the urgent one has it to
// itself, the other what HTB's floor explains and no more.
func TestStrict(t *testing.T) {
	for _, name := range []string{"htb 100M", "htb buckets", "prio 2 shaped", "ets shaped"} {
		t.Run(name, func(t *testing.T) {
			q := caseNamed(t, name)
			link, _ := wire(t, 1)
			for range 3 {
				if strict(t, link, q) {
					return
				}
				q.Rate /= 10 // an emulated CPU does not fill 100 Mbit/s
			}
			t.Error("at no rate the loser was held to its floor")
		})
	}
}

// strict measures for a second; false where the loser got more than its floor. On
// a slow CPU it may do so by right, in moments when the winner has nothing
// queued; at a lower rate there are none.
func strict(t *testing.T, link testutil.End, q plan.Queue) bool {
	t.Helper()
	apply(t, link, q)
	low, high := 0, 15
	if q.Scheduler == policy.HTB {
		low, high = int(htbClassID(q, 0, 0)), int(htbClassID(q, q.Classes-1, 0))
	}
	stop := make(chan struct{})
	defer flood(t, link, int(limit(uint64(q.Rate)/8))/2, stop, low, high).Wait()
	defer close(stop)
	time.Sleep(300 * time.Millisecond) // both queues are full
	before := mustCount(t, link)
	started := time.Now()
	time.Sleep(time.Second)
	after, seconds := mustCount(t, link), time.Since(started).Seconds()
	loser := after[0].Bytes - before[0].Bytes
	winner := after[q.Classes-1].Bytes - before[q.Classes-1].Bytes
	reached := float64(winner) * 8 / seconds / float64(q.Rate)
	t.Logf("%v: the winner has %.3f of it, the loser %d bytes in %.2f s", q.Rate, reached, loser, seconds)
	floor := uint64(float64(floorRate(uint64(q.Rate)/8, q.Leaves()))*seconds) + 2*frame
	if after[0].Backlog == 0 || loser > floor {
		return false
	}
	if share := float64(winner) / float64(winner+loser); share < 0.98 {
		t.Errorf("the winner has %.3f of what was sent", share)
	}
	if reached < 0.7 || reached > 1.05 {
		t.Errorf("the winner has %.3f of the rate", reached)
	}
	return true
}

// TestDefaultClass: what has an ordinary priority goes with priority 0.
func TestDefaultClass(t *testing.T) {
	q := caseNamed(t, "htb reversed")
	link, _ := wire(t, 1)
	apply(t, link, q)
	before := mustCount(t, link)
	sendUDP(t, link, 7, 20, 500)
	after := mustCount(t, link)
	if n := after[q.Map[0]].Packets - before[q.Map[0]].Packets; n < 20 {
		t.Errorf("class %d of priority 0 has %d packets: %+v", q.Map[0], n, after)
	}
}

func mustCount(t *testing.T, link testutil.End) []ClassCounters {
	t.Helper()
	c, err := Counters(link.Index)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// flood sends with each priority as fast as the socket takes it, until stop. The
// buffer is less than a leaf holds, so that senders wait and nothing is lost.
func flood(t *testing.T, link testutil.End, buffer int, stop <-chan struct{}, priorities ...int) *sync.WaitGroup {
	var all sync.WaitGroup
	for _, p := range priorities {
		c := dialUDP(t, link, p, buffer)
		all.Go(func() {
			defer c.Close()
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := c.Write(make([]byte, 1400)); err != nil {
						t.Errorf("send: %v", err)
						return
					}
				}
			}
		})
	}
	return &all
}
