package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// bounded is a policy that bounds the TCP memory of a cgroup of the bench's.
func bounded(group, bound string) string {
	return fmt.Sprintf("version: 1\nworkloads:\n  held:\n    match: [{cgroup: %s}]\n    tcp-memory: %s\n", group, bound)
}

// A deaf peer accepts connections and does not read, until it hears.
type deaf struct {
	at    netip.AddrPort
	heard chan struct{}
	hear  func()
}

func (b *bench) deaf(t *testing.T) *deaf {
	t.Helper()
	var l net.Listener
	var err error
	b.there.Do(func() { l, err = net.Listen("tcp4", b.far.IPv4.Addr().String()+":0") })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	d := &deaf{at: l.Addr().(*net.TCPAddr).AddrPort(), heard: make(chan struct{})}
	d.hear = sync.OnceFunc(func() { close(d.heard) })
	t.Cleanup(d.hear)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				<-d.heard
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return d
}

var skmem = regexp.MustCompile(`skmem:\(r(\d+),rb\d+,t\d+,tb\d+,f(\d+),w(\d+),`)

// tcpMemory is what the TCP sockets of a namespace hold, as ss has it, bytes.
func tcpMemory(t *testing.T, ns *testutil.Namespace) (sum uint64) {
	t.Helper()
	for _, m := range skmem.FindAllStringSubmatch(ns.Output("ss", "-Htnm", "state", "all"), -1) {
		for _, text := range m[1:] {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// judgedMemory is the judgement of the one bound in force.
func (b *bench) judgedMemory(t *testing.T) plan.Judgement {
	t.Helper()
	s, err := b.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range s.Promises {
		if j.Promise == plan.PromiseMemory {
			return j
		}
	}
	t.Fatalf("status tells of no bound: %+v", s)
	panic("unreachable")
}

// peakMemory is the most that the sockets of this host hold for a time, bytes.
func (b *bench) peakMemory(t *testing.T, over time.Duration) (peak uint64) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < over; time.Sleep(50 * time.Millisecond) {
		peak = max(peak, tcpMemory(t, b.here))
	}
	return peak
}

// stuff has a process in a cgroup write into a hundred connections to a deaf peer.
func (b *bench) stuff(t *testing.T, dir string) *deaf {
	t.Helper()
	w, err := traffic.StartWorker(b.here.Path(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	d := b.deaf(t)
	if err := w.Send(context.Background(), traffic.Where{To: d.at}, 100); err != nil {
		t.Fatal(err)
	}
	return d
}

// toldOfBound holds what is told of the sockets below the bound against what is told of that.
func (b *bench) toldOfBound(t *testing.T, sockets int) {
	t.Helper()
	r := b.report(t, SocketQuery{Workload: "held", All: true})
	if len(r.Holders) != 1 || r.Holders[0].Memory == nil {
		t.Fatalf("the bound is not told: %+v", r.Holders)
	}
	var counted uint64
	bound, capped := 0, 0
	for _, s := range r.Holders[0].Sockets {
		if s.Bound == nil {
			continue
		}
		bound++
		counted += s.Bound.Counts
		if s.Bound.Capped {
			capped++
		}
	}
	pool := r.Holders[0].Memory.Pool
	if bound != sockets || pool.Sockets != uint64(sockets) || capped == 0 || pool.Throttled == 0 || pool.Most < pool.May {
		t.Errorf("%d sockets are bound, %d of them capped, of %+v", bound, capped, pool)
	}
	if counted < pool.May/2 || counted > pool.May*2 { // it goes on meanwhile
		t.Errorf("the sockets count as %d, the pool has %d", counted, pool.May)
	}
}

// TestMemoryBound has a real process stuff connections to a peer that does not read.
func TestMemoryBound(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "ss")
	const bound, most = "{soft: 8MiB, max: 16MiB}", 16 << 20 * 11 / 10
	t.Run("from the first connection on", func(t *testing.T) {
		b := newBench(t)
		dir, group := b.makeCgroup(t, "held")
		b.apply(t, bounded(group, bound))
		b.stuff(t, dir)
		peak, j := b.peakMemory(t, 3*time.Second), b.judgedMemory(t)
		t.Logf("%d bytes; %s", peak, j.Evidence)
		if peak > most || j.Verdict != plan.Kept || j.Memory.Pool.Sockets != 100 {
			t.Errorf("%d bytes held; status: %+v", peak, j)
		}
		b.toldOfBound(t, 100)
		if again := b.apply(t, bounded(group, bound)); len(again) != 0 {
			t.Errorf("the second apply changes %v", again)
		}
	})
	t.Run("open before", func(t *testing.T) {
		testutil.Needs(t, "late sock_ops")
		b := newBench(t)
		dir, group := b.makeCgroup(t, "held")
		d := b.stuff(t, dir)
		if peak := b.peakMemory(t, 2*time.Second); peak < most {
			t.Errorf("%d bytes held without a bound: this test shows nothing", peak)
		}
		b.apply(t, bounded(group, bound))
		if j := b.judgedMemory(t); j.Verdict != plan.Broken || j.Memory.Pool.Sockets != 100 {
			t.Errorf("what is queued already goes as peers read, status: %+v", j)
		}
		d.hear()
		var j plan.Judgement
		for begin := time.Now(); j.Verdict != plan.Kept && time.Since(begin) < 10*time.Second; time.Sleep(100 * time.Millisecond) {
			j = b.judgedMemory(t)
		}
		if peak := b.peakMemory(t, time.Second); peak > most || j.Verdict != plan.Kept {
			t.Errorf("%d bytes held after peers read; status: %+v", peak, j)
		}
	})
}

// carried has iperf3 send one flow for some seconds, from here or to here, and returns what
// came in, Mbit/s of payload, its slow start included.
func (b *bench) carried(t *testing.T, cgroup string, seconds int, args ...string) float64 {
	t.Helper()
	var out strings.Builder
	args = append([]string{"--client", b.far.IPv4.Addr().String(), "--port", "5201", "--time", fmt.Sprint(seconds), "--congestion", "cubic", "--json"}, args...)
	wait(t, start(t, b.here, cgroup, &out, "iperf3", args...), &out)
	var d download
	if err := json.Unmarshal([]byte(out.String()), &d); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return d.End.Received.BitsPerSecond / 1e6
}

// TestMemoryFarAway has one flow over a path of 50 ms, in a budget that suffices for it: 16 times
// what is under way on such a path, for each connection, of which iperf3 has two.
func TestMemoryFarAway(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "netem qdisc")
	const mbit, ms, seconds = 20, 50, 8
	const soft = 2 * 16 * mbit * 125 * ms // bytes
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	for _, end := range []struct {
		ns  *testutil.Namespace
		dev string
	}{{b.here, b.link.Name}, {b.there, b.far.Name}} {
		end.ns.Output("tc", "qdisc", "replace", "dev", end.dev, "root", "netem", "delay", fmt.Sprintf("%dms", ms/2), "rate", fmt.Sprintf("%dmbit", mbit), "limit", "300")
	}
	b.iperfServer(t, 5201)
	got := map[string][2]float64{} // without a bound, and with one
	for turn := range 2 {
		if turn == 1 {
			b.apply(t, bounded(group, fmt.Sprintf("{soft: %dKiB, max: %dKiB}", soft>>10, soft>>9)))
		}
		for direction, args := range map[string][]string{"sent": nil, "received": {"--reverse"}} {
			rates := got[direction]
			rates[turn] = b.carried(t, dir, seconds, args...)
			got[direction] = rates
		}
	}
	j := b.judgedMemory(t)
	t.Logf("Mbit/s without a bound and with %d bytes: %v; %s", soft, got, j.Evidence)
	for direction, rates := range got {
		if rates[1] < 0.98*rates[0] || rates[0] < 0.8*mbit {
			t.Errorf("%s: %.2f Mbit/s without a bound, %.2f with one", direction, rates[0], rates[1])
		}
	}
	if j.Verdict != plan.Kept || j.Memory.Pool.Most == 0 {
		t.Errorf("status: %+v", j)
	}
}
