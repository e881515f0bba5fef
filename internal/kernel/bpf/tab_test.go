package bpf

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/fair"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// pacedWire is a wire below a limit of what goes to port 4000 by it, by which this process' connections are paced.
func pacedWire(t *testing.T, max policy.Rate) (*wire, *Generation) {
	t.Helper()
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	w.forgetLimits()
	rules, promises := ports(4000), w.promises()
	limit(&rules, &promises, map[plan.Owner]policy.Rate{{Contract: plan.FirstID}: max})
	g := w.publishTo(rules, promises, bare)
	if err := g.AttachPace(); err != nil {
		t.Fatal(err)
	}
	join(t, w.room.Cgroup, os.Getpid())
	t.Cleanup(func() { join(t, filepath.Dir(w.room.Cgroup), os.Getpid()) })
	return w, g
}

// TestTab: whatever a paced connection sends is charged, or on its tab, which takes no more than a moment of the
// limit; and packets of one that sends little each go on it.
func TestTab(t *testing.T) {
	const bandwidth = 10_000_000_000
	w, g := pacedWire(t, bandwidth)
	c := w.toSink("tcp4").(*net.TCPConn)
	s, err := w.room.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// passed is what link_egress has seen.
	passed := func() (packets, bytes uint64) {
		t.Helper()
		counters, err := g.Counters(w.link.Index)
		if err != nil {
			t.Fatal(err)
		}
		return counters[plan.FirstID].Packets, counters[plan.FirstID].Bytes
	}
	tab := func() (k linkEgressKnown) {
		t.Helper()
		descriptor(t, c, func(fd int) {
			if err := s.verdicts.Lookup(uint32(fd), &k); err != nil {
				t.Fatal(err)
			}
		})
		return k
	}
	for range 20 { // until it is paced, and no newcomer
		write(t, c, fair.Newcomer/10)
		acknowledged(t, c)
	}
	var most uint32
	before, _ := passed()
	for range 50 {
		for range 40 {
			write(t, c, 1)
		}
		acknowledged(t, c)
		k := tab()
		if _, bytes := passed(); held(t, g).Passed+uint64(k.Tab.Bytes) != bytes {
			t.Fatalf("%d bytes are charged and %d on the tab of %d that passed", held(t, g).Passed, k.Tab.Bytes, bytes)
		}
		if k.Tab.Bytes > k.Tab.Room {
			t.Errorf("%d bytes are on a tab with room for %d", k.Tab.Bytes, k.Tab.Room)
		}
		most = max(most, k.Tab.Segments)
	}
	after, _ := passed()
	if most < 2 {
		t.Errorf("of %d packets at most %d went on the tab", after-before, most)
	}
	_, bytes := passed()
	if room := tab().Tab.Room; room == 0 || room > bandwidth/8>>10 || uint64(room) > bytes/16 {
		t.Errorf("there is room for %d bytes on the tab of a connection that sent %d, below a limit of %g bit/s", room, bytes, float64(bandwidth))
	}
}

// TestTabOfShort: connections that say all that they have at once, and end, have been charged for nearly all of it, however fast
// their limit is.
func TestTabOfShort(t *testing.T) {
	w, g := pacedWire(t, 50e9)
	w.listenFor(w.there, w.to4(4000), discardAll)
	for range 20 {
		c := w.dial(w.here, w.to4(4000))
		write(t, c, 20_000) // more than a newcomer
		acknowledged(t, c)
		for range 8 {
			write(t, c, 10_000)
		}
		acknowledged(t, c)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	charged := held(t, g).Passed // before what passed is read: the last connection's end may still be on its way
	counters, err := g.Counters(w.link.Index)
	if err != nil {
		t.Fatal(err)
	}
	passed := counters[plan.FirstID].Bytes
	t.Logf("%d bytes passed, %d are charged", passed, charged)
	if charged < passed-passed/16 || charged > passed {
		t.Errorf("%d bytes are charged of %d that passed", charged, passed)
	}
}

// A connection that has another contract now pays what is on its tab there, and nothing is forgotten.
func TestTabGoesAlong(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	w.forgetLimits()
	rules, promises := ports(4000), w.promises()
	limits := map[plan.Owner]policy.Rate{{Contract: plan.FirstID}: 10e9, {Contract: plan.FirstID + 1}: 10e9}
	limit(&rules, &promises, limits)
	g := w.publishTo(rules, promises, bare)
	join(t, w.room.Cgroup, os.Getpid())
	t.Cleanup(func() { join(t, filepath.Dir(w.room.Cgroup), os.Getpid()) })
	c := w.toSink("tcp4").(*net.TCPConn)
	const owes = 5000
	s, err := w.room.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	descriptor(t, c, func(fd int) {
		var k linkEgressKnown
		if err := s.verdicts.Lookup(uint32(fd), &k); err != nil {
			t.Fatal(err)
		}
		k.Tab.In, k.Tab.Ends, k.Tab.Bytes, k.Tab.Segments, k.Tab.Room = 1<<40, 1<<62, owes, 4, 1<<20
		if err := s.verdicts.Put(uint32(fd), k); err != nil {
			t.Fatal(err)
		}
	})
	held := func() uint64 {
		all, err := g.Held()
		if err != nil {
			t.Fatal(err)
		}
		return all[plan.Owner{Contract: plan.FirstID}].Passed
	}
	acknowledged(t, c) // its SYN
	before := held()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	acknowledged(t, c)
	if got := held() - before; got != owes+67 {
		t.Errorf("%d bytes are charged, want %d that were owed and a packet of 67", got, owes)
	}
}

// acknowledged waits until all that a connection sent is, and is what TCP says of it then.
func acknowledged(t testing.TB, c *net.TCPConn) *unix.TCPInfo {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		var info *unix.TCPInfo
		var err error
		descriptor(t, c, func(fd int) { info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO) })
		if err != nil {
			t.Fatal(err)
		}
		if info.Unacked == 0 && info.Notsent_bytes == 0 {
			return info
		}
	}
	t.Fatal("what it sent is not acknowledged")
	return nil
}

// TestTabReceived is TestTab of what a connection receives.
func TestTabReceived(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	const bandwidth = 10_000_000_000
	here, there, g, tab := receivingConnection(t, bandwidth)
	transfer(t, there, here, 20*fair.Newcomer) // until it is no newcomer
	sent, before := sentInAll(t, there), held(t, g).Passed+uint64(tab().Tab.Bytes)
	var most uint32
	for range 50 {
		for range 40 {
			write(t, there, 1)
		}
		received(t, here, 40)
		came := sentInAll(t, there) - sent
		k, charged := tab().Tab, held(t, g).Passed
		if charged-before+uint64(k.Bytes) != came {
			t.Fatalf("%d bytes are charged and %d on the tab of %d that came", charged-before, k.Bytes, came)
		}
		if k.Bytes > k.Room || k.Held > k.Bytes {
			t.Errorf("%d bytes are on a tab with room for %d, %d of packets that may be held", k.Bytes, k.Room, k.Held)
		}
		most = max(most, k.Segments)
		sent, before = sent+came, charged+uint64(k.Bytes)
	}
	if most < 2 {
		t.Errorf("at most %d packets went on the tab", most)
	}
	if room := tab().Tab.Room; room == 0 || room > bandwidth/8>>12 {
		t.Errorf("there is room for %d bytes on the tab below a limit of %g bit/s", room, float64(bandwidth))
	}
}

// TestTabEndsAtLimit: of a connection whose limit is reached each packet is charged by itself.
func TestTabEndsAtLimit(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	const bandwidth, bucket = 10_000_000, 10_000_000 / 8 * 220 / 1000
	const most = bucket * 4 / 5 // of it, so that nothing is lost, and then waited for
	for range 5 {
		here, there, g, tab := receivingConnection(t, bandwidth)
		begin := time.Now()
		transfer(t, there, here, most)
		k, h := tab().Tab, held(t, g)
		if time.Since(begin) > 50*time.Millisecond {
			continue // in 66 ms the bucket would be half full again
		}
		if k.In != 0 || k.Bytes != 0 {
			t.Errorf("the tab is open, where the bucket is not half full: %+v; %+v", k, h)
		}
		return
	}
	t.Error("each of five transfers takes longer than the bucket stays less than half full")
}

// TestTabIsPaid: what may be held has its price in the bucket, with the next packet where it went on the tab, and once.
func TestTabIsPaid(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	const bandwidth, bucket, each, packets = 100_000_000, 100_000_000 / 8 * 220 / 1000, 200, 40
	here, there, g, tab := receivingConnection(t, bandwidth)
	paid := func() time.Duration {
		t.Helper()
		var b limitBudget
		if err := g.memory.budgets.Lookup(uint32(1), &b); err != nil {
			t.Fatal(err)
		}
		return time.Duration(b.StreamsPaid / 16)
	}
	for range 10 {
		transfer(t, there, here, bucket*2/5)
		write(t, there, each) // may go on the tab, as may the last of the transfer
		received(t, here, each)
		sent := sentInAll(t, there)
		start, before, owed := time.Now(), paid(), tab().Tab.Held
		var most uint32
		for range packets {
			write(t, there, each)
			received(t, here, each)
			most = max(most, tab().Tab.Held)
		}
		time.Sleep(10 * time.Millisecond) // a jiffy
		write(t, there, each)
		received(t, here, each)
		came := sentInAll(t, there) - sent
		spent := paid() - before
		if time.Since(start) > 60*time.Millisecond { // it may be full again, and then forgets
			continue
		}
		if left := tab().Tab.Held; left != 0 {
			t.Errorf("%d bytes are on the tab, after a packet that paid", left)
		}
		want := time.Duration((came + uint64(owed)) * 8 * 1e9 / bandwidth)
		if spent != want || most == 0 {
			t.Errorf("%v is paid, want %v, of which there were %d bytes on the tab before; at most %d bytes on it", spent, want, owed, most)
		}
		return
	}
	t.Error("there was no quiet moment")
}

// receivingConnection is a connection of a workload that may receive so much, its peer's end, and what is on its tab.
func receivingConnection(t *testing.T, max policy.Rate) (here, there *net.TCPConn, g *Generation, tab func() linkEgressKnown) {
	t.Helper()
	w := newWire(t)
	rules := noRules()
	rules.Cgroups[cgroupID(t, w.room.Cgroup)] = plan.FirstID
	g = w.receiving(rules, map[plan.ContractID]policy.Rate{plan.FirstID: max})
	if err := g.AttachWindow(); err != nil {
		t.Fatal(err)
	}
	sink := w.listen(w.there, w.to4(0)) // of nobody who is below the limit
	join(t, w.room.Cgroup, os.Getpid())
	t.Cleanup(func() { join(t, filepath.Dir(w.room.Cgroup), os.Getpid()) })
	here = w.dial(w.here, sink.Addr().String())
	c, err := sink.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s := sockets(t, w.room)
	return here, c.(*net.TCPConn), g, func() linkEgressKnown {
		t.Helper()
		var k linkEgressKnown
		descriptor(t, here, func(fd int) {
			if err := s.arrivals.Lookup(uint32(fd), &k); err != nil {
				t.Fatal(err)
			}
		})
		return k
	}
}

func write(t testing.TB, c net.Conn, bytes int) {
	t.Helper()
	if _, err := c.Write(make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
}

// transfer sends more than fits the buffers of a connection, and takes it.
func transfer(t *testing.T, from net.Conn, to *net.TCPConn, bytes int) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := from.Write(make([]byte, bytes))
		done <- err
	}()
	received(t, to, bytes)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// received takes so many bytes from a connection.
func received(t *testing.T, c *net.TCPConn, bytes int) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
}

// sentInAll is how many bytes a connection has sent once all is acknowledged, with the headers of each segment, which have
// timestamps, and with what it sent again.
func sentInAll(t *testing.T, c *net.TCPConn) uint64 {
	t.Helper()
	info := acknowledged(t, c)
	return info.Bytes_sent + 66*uint64(info.Segs_out)
}
