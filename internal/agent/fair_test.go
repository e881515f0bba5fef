package agent

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/testutil"
)

// A sink is a server that counts what each connection delivers.
type sink struct {
	net.Listener
	mutex sync.Mutex
	bytes map[string]*atomic.Uint64 // by the client's address
}

func (b *bench) sink(t *testing.T) *sink {
	t.Helper()
	s := &sink{bytes: map[string]*atomic.Uint64{}}
	b.there.Do(func() { s.Listener = listen(t, "") })
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			n := s.of(c.RemoteAddr())
			all.Go(func() {
				defer c.Close()
				for buffer := make([]byte, 1<<18); ; {
					got, err := c.Read(buffer)
					n.Add(uint64(got))
					if err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		s.Close()
		all.Wait()
	})
	return s
}

func (s *sink) of(client net.Addr) *atomic.Uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	n, ok := s.bytes[client.String()]
	if !ok {
		n = &atomic.Uint64{}
		s.bytes[client.String()] = n
	}
	return n
}

// A contest is what flows got of a line in a time.
type contest struct {
	flows   []uint64 // bytes that each delivered
	buckets []uint64 // bytes that each bucket of theirs sent
	// In which part of the looks packets waited in the bucket that was empty most:
	// what a sender that is not scheduled leaves is the others' by right.
	waited float64
}

// bulk runs n unpaced TCP flows one after the other started, and watches them for
// a time after they have settled.
func (b *bench) bulk(t *testing.T, s *sink, congestion string, n int, window time.Duration) (c contest) {
	t.Helper()
	to := netip.AddrPortFrom(b.far.IPv4.Addr(), s.Addr().(*net.TCPAddr).AddrPort().Port()).String()
	dialer := net.Dialer{Control: func(_, _ string, rc syscall.RawConn) (err error) {
		_ = rc.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion)
		})
		return err
	}}
	var senders sync.WaitGroup
	defer senders.Wait() // after all are closed
	var counts []*atomic.Uint64
	for range n {
		var conn net.Conn
		var err error
		b.here.Do(func() { conn, err = dialer.Dial("tcp4", to) })
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		counts = append(counts, s.of(conn.LocalAddr()))
		senders.Go(func() { _, _ = io.Copy(conn, zeros{}) })
		time.Sleep(100 * time.Millisecond) // who comes first finds an empty line
	}
	time.Sleep(400 * time.Millisecond)
	before, sent := make([]uint64, n), b.buckets(t)
	for i, count := range counts {
		before[i] = count.Load()
	}
	looks, waits := 0, make([]int, len(sent))
	for end := time.Now().Add(window); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		looks++
		for i, bucket := range b.buckets(t) {
			if bucket.Backlog > 0 {
				waits[i]++
			}
		}
	}
	for i, count := range counts {
		c.flows = append(c.flows, count.Load()-before[i])
	}
	c.waited = 1
	for i, bucket := range b.buckets(t) {
		if more := bucket.Bytes - sent[i].Bytes; more > 100_000 {
			c.buckets = append(c.buckets, more)
			c.waited = min(c.waited, float64(waits[i])/float64(looks))
		}
	}
	return c
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func (b *bench) buckets(t *testing.T) []tc.Bucket {
	t.Helper()
	var all []tc.ClassCounters
	err := b.inScope(func() (err error) {
		all, err = tc.Counters(b.link.Index)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Buckets[:]
}

// TestFlowsShareClass: two local flows in one class have half of it each, though
// the kernel's own limit on what they queue would keep them at whatever shares
// they began with. Where their hashes meet in one bucket, it does; fq_codel tells them apart itself.
func TestFlowsShareClass(t *testing.T) {
	for _, congestion := range []string{"cubic", "bbr"} {
		t.Run(congestion, func(t *testing.T) {
			testutil.Needs(t, congestion+" congestion control")
			b := newBench(t)
			b.apply(t, b.policyText("  gold: {match: [{port: 4000}], priority: 15}\n"))
			divided := b.kind(t) == "fq_codel" // by flows, and not by the buckets of a hash
			s := b.sink(t)
			const runs, tries = 10, 40
			fair, judged, shares := 0, 0, []string{}
			for range tries {
				c := b.bulk(t, s, congestion, 2, 1400*time.Millisecond)
				share := float64(c.flows[0]) / float64(c.flows[0]+c.flows[1])
				shares = append(shares, fmt.Sprintf("%.3f in %d, waiting %.2f", share, len(c.buckets), c.waited))
				if len(c.buckets) < 2 && !divided || c.waited < always {
					continue // they met, or one had nothing to send
				}
				if share > 0.47 && share < 0.53 {
					fair++
				}
				if judged++; judged == runs {
					break
				}
			}
			t.Logf("the first of two has, of buckets: %v", shares)
			if fair < runs-1 {
				t.Errorf("only %d of %d runs were fair: %v", fair, judged, shares)
			}
			for range tries {
				c := b.bulk(t, s, congestion, 9, 2*time.Second)
				t.Logf("nine flows have %v in buckets of %v, waiting %.2f", c.flows, c.buckets, c.waited)
				if len(c.buckets) < 2 && !divided || c.waited < always {
					continue
				}
				shares := c.buckets
				if divided {
					shares = c.flows
				}
				if least, most := slices.Min(shares), slices.Max(shares); most > least*5/4 {
					t.Errorf("nine flows share %d queues unevenly: %v", len(shares), shares)
				}
				return
			}
			t.Error("nine flows never had packets to send all the time")
		})
	}
}

// always is the least part of the looks that must find packets waiting.
const always = 0.95

// kind is the kind of the first leaf, as tc tells it.
func (b *bench) kind(t *testing.T) string {
	t.Helper()
	out := b.here.Output("tc", "qdisc", "show", "dev", b.link.Name)
	_, rest, _ := strings.Cut(out, "\nqdisc ")
	kind, _, _ := strings.Cut(rest, " ")
	return kind
}

// TestFlowFillsSlowLine: a flow that begins on an empty line, and so takes it for a much
// faster one, fills it all the same.
func TestFlowFillsSlowLine(t *testing.T) {
	b := newBench(t)
	b.iperfServer(t, 5201)
	for _, rate := range []int{5, 20} {
		b.apply(t, b.policyAt(rate, "  bulk: {match: [{port: 5201}], priority: 3}\n"))
		client, out := b.iperfClient(t, "", 5201, 4)
		wait(t, client, out)
		if got := delivered(t, out); got < 0.8*float64(rate) {
			t.Errorf("%.2f of %d Mbit/s", got, rate)
		}
	}
}
