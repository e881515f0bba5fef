package tc

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// tcStats is what tc -j tells of a qdisc or class.
type tcStats struct {
	Handle, Parent                                             string
	Bytes, Packets, Drops, Overlimits, Requeues, Backlog, Qlen uint64
}

func tcCounters(t *testing.T, link testutil.End, what string) map[string]tcStats {
	t.Helper()
	var list []struct {
		tcStats
		Class string // tc's key for the kind
	}
	if err := json.Unmarshal([]byte(tc(t, "-j -s "+what+" show dev "+link.Name)), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]tcStats{}
	for _, l := range list {
		key := l.Handle
		if key == "0:" {
			key = "parent " + l.Parent
		}
		out[key] = l.tcStats
	}
	return out
}

// TestCounters sends a different amount with each priority and compares with
// what tc tells of the leaves.
func TestCounters(t *testing.T) {
	for _, name := range []string{"htb 100M", "htb buckets", "htb fq_codel", "prio", "prio reversed", "prio 2 shaped", "ets", "mqprio 3", "fq"} {
		t.Run(name, func(t *testing.T) {
			q := caseNamed(t, name)
			link, _ := wire(t, 4)
			apply(t, link, q)
			before, err := Counters(link.Index)
			if err != nil {
				t.Fatal(err)
			}
			sent := map[int]uint64{}
			for p, class := range q.Map {
				priority := uint32(p)
				if q.Scheduler == policy.HTB {
					priority = htbClassID(q, int(class), p%q.Leaves())
				}
				sendUDP(t, link, priority, p+1, make([]byte, 1000))
				sent[int(class)] += uint64(p + 1)
			}
			counters, leaves := atRest(t, link), tcCounters(t, link, "qdisc")
			for i, c := range counters {
				if c.Class == AllClasses {
					c.Class = 0
				}
				if n := c.Packets - before[i].Packets; n != sent[c.Class] {
					t.Errorf("class %d counts %d packets of %d", c.Class, n, sent[c.Class])
				}
				if got, want := c, leafCounters(q, c.Class, leaves); !sameCounters(got, want) || !sameBuckets(q, got, leaves) {
					t.Errorf("class %d: %+v\ntc has %+v", c.Class, got, want)
				}
			}
		})
	}
}

func leafCounters(q plan.Queue, class int, leaves map[string]tcStats) tcStats {
	switch q.Scheduler {
	case policy.FQ:
		return leaves["7e1f:"]
	case policy.MQPrio:
		var sum tcStats
		r := spread(4, q.Classes)[class]
		for i := range r.count {
			l := leaves[fmt.Sprintf("parent 7e1f:%x", r.offset+i+1)]
			sum.Bytes, sum.Packets, sum.Drops = sum.Bytes+l.Bytes, sum.Packets+l.Packets, sum.Drops+l.Drops
			sum.Requeues += l.Requeues
		}
		return sum
	}
	var sum tcStats
	for b := range q.Leaves() {
		l := leaves[handleString(leafHandle(q, class, b))]
		sum.Bytes, sum.Packets, sum.Drops = sum.Bytes+l.Bytes, sum.Packets+l.Packets, sum.Drops+l.Drops
		sum.Backlog, sum.Qlen, sum.Requeues = sum.Backlog+l.Backlog, sum.Qlen+l.Qlen, sum.Requeues+l.Requeues
	}
	return sum
}

// sameBuckets compares leaf by leaf; mqprio and fq have none of ours.
func sameBuckets(q plan.Queue, c ClassCounters, leaves map[string]tcStats) bool {
	if q.Leaf == plan.LeafDefault {
		return c.Buckets == [plan.MaxBuckets]Bucket{}
	}
	for b := range q.Leaves() {
		l := leaves[handleString(leafHandle(q, c.Class, b))]
		if c.Buckets[b] != (Bucket{l.Bytes, l.Backlog}) {
			return false
		}
	}
	return true
}

func sameCounters(c ClassCounters, want tcStats) bool {
	return c.Bytes == want.Bytes && c.Packets == want.Packets && c.Drops == want.Drops &&
		c.Requeues == want.Requeues && c.Backlog == want.Backlog && c.QueueLen == want.Qlen
}

// TestCountersOfDrops overruns one class: drops and backlog agree with tc, and
// the other class has none.
func TestCountersOfDrops(t *testing.T) {
	link, _ := wire(t, 1)
	q := caseNamed(t, "htb slow")
	apply(t, link, q)
	sendUDP(t, link, htbClassID(q, 3, 0), 100, make([]byte, 1000))
	counters, err := Counters(link.Index)
	if err != nil {
		t.Fatal(err)
	}
	c := counters[3]
	want := tcCounters(t, link, "qdisc")[handleString(leafHandle(q, 3, 0))]
	if c.Drops == 0 || c.Backlog == 0 || c.QueueLen == 0 || c.Drops != want.Drops {
		t.Errorf("%+v, tc has %+v", c, want)
	}
	if counters[4].Drops != 0 || counters[4].Packets != 0 {
		t.Errorf("class 4 counts %+v", counters[4])
	}
}

// TestCountersOfFlows fills a leaf that has a queue for each flow: what waits in them is what
// waits in the leaf, and other leaves have no queues.
func TestCountersOfFlows(t *testing.T) {
	link, _ := wire(t, 1)
	q := caseNamed(t, "htb fq_codel slow")
	apply(t, link, q)
	const flows, class = 5, 2
	for range flows {
		sendUDP(t, link, htbClassID(q, class, 0), 20, make([]byte, 1000))
	}
	// The queues are read after the leaves, and the line does not stand still meanwhile.
	counters := mustCount(t, link)
	for counters[class].Backlog != sum(counters[class].Flows) {
		if counters[class].Backlog == 0 {
			t.Fatal("the leaf and its queues were never seen to agree")
		}
		counters = mustCount(t, link)
	}
	for _, c := range counters {
		least, most := 0, 0
		if c.Class == class {
			least, most = 2, flows // by chance some may share a queue
		}
		if n := len(c.Flows); c.Flows == nil || n < least || n > most {
			t.Errorf("class %d has %d queues: %v", c.Class, n, c.Flows)
		}
	}
	apply(t, link, caseNamed(t, "htb slow"))
	for _, c := range mustCount(t, link) {
		if c.Flows != nil {
			t.Errorf("class %d has queues without fq_codel: %v", c.Class, c.Flows)
		}
	}
}

func sum(flows map[uint32]uint64) (bytes uint64) {
	for _, waits := range flows {
		bytes += waits
	}
	return bytes
}

func TestCountersOfOthers(t *testing.T) {
	link := newLink(t, 1)
	if _, err := Counters(link.Index); !errors.Is(err, ErrForeign) {
		t.Errorf("counters of the kernel's root: %v", err)
	}
	apply(t, link, queueCases()[2].queue)
	tc(t, "qdisc del dev "+link.Name+" parent 7e1f:12 handle 7e32:")
	if _, err := Counters(link.Index); !errors.Is(err, ErrDrift) {
		t.Errorf("counters without a leaf: %v", err)
	}
}
