package tc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// sendUDP sends datagrams of a size through the link to the sink behind it, with
// a socket priority, which HTB also takes as a class id.
func sendUDP(t *testing.T, link testutil.End, priority, count, size int) {
	t.Helper()
	c := dialUDP(t, link, priority, 4<<20)
	defer c.Close()
	for range count {
		if _, err := c.Write(make([]byte, size)); err != nil {
			t.Fatalf("send: %v", err)
		}
	}
}

const sinkPort = 9999

// dialUDP has to be called in the link's namespace.
func dialUDP(t *testing.T, link testutil.End, priority, buffer int) net.Conn {
	t.Helper()
	to := link.IPv4.Addr().Next()
	d := net.Dialer{Control: func(_, _ string, rc syscall.RawConn) (err error) {
		return errors.Join(rc.Control(func(fd uintptr) {
			err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, priority),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer))
		}), err)
	}}
	c, err := d.Dial("udp4", netip.AddrPortFrom(to, sinkPort).String())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wire joins two namespaces by an addressed veth pair, enters the first and
// opens a sink in the second.
func wire(t *testing.T, queues int) (from, to testutil.End) {
	t.Helper()
	ns := testutil.NewNamespace(t)
	from, to = testutil.Veth(t, ns, testutil.NewNamespace(t), testutil.VethOptions{Queues: queues})
	ns.Enter(t)
	var sink net.PacketConn
	var err error
	to.NS.Do(func() { sink, err = net.ListenPacket("udp4", netip.AddrPortFrom(to.IPv4.Addr(), sinkPort).String()) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	return from, to
}

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
				priority := p
				if q.Scheduler == policy.HTB {
					priority = int(htbClassID(q, int(class), p%q.Leaves()))
				}
				sendUDP(t, link, priority, p+1, 1000)
				sent[int(class)] += uint64(p + 1)
			}
			counters, leaves := settled(t, link)
			for i, c := range counters {
				if c.Class == AllClasses {
					c.Class = 0
				}
				// Neighbour discovery and the like is there too, with priority 0 or 7.
				if n := c.Packets - before[i].Packets; n < sent[c.Class] || n > sent[c.Class]+10 {
					t.Errorf("class %d counts %d packets of %d", c.Class, n, sent[c.Class])
				}
				if got, want := c, leafCounters(q, c.Class, leaves); !sameCounters(got, want) || !sameBuckets(q, got, leaves) {
					t.Errorf("class %d: %+v\ntc has %+v", c.Class, got, want)
				}
			}
		})
	}
}

// settled waits until all that was sent has left, and gives our counters and
// tc's from a moment at which nobody sent (the kernel does on a new link).
func settled(t *testing.T, link testutil.End) ([]ClassCounters, map[string]tcStats) {
	t.Helper()
	for range 100 {
		c := mustCount(t, link)
		leaves := tcCounters(t, link, "qdisc")
		queued := slices.ContainsFunc(c, func(c ClassCounters) bool { return c.QueueLen > 0 })
		if !queued && slices.Equal(c, mustCount(t, link)) {
			return c, leaves
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the queue does not come to rest")
	return nil, nil
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
	sendUDP(t, link, int(htbClassID(q, 3, 0)), 100, 1000)
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
