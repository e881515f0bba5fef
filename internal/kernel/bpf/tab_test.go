package bpf

import (
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

// TestTab: whatever a paced connection sends is charged, or on its tab, which takes no more than a moment of the
// limit; and packets of one that sends little each go on it.
func TestTab(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	const bandwidth = 10_000_000_000
	w := newWire(t)
	w.forgetLimits()
	rules, promises := ports(4000), w.promises()
	limit(&rules, &promises, map[plan.Owner]policy.Rate{{Contract: plan.FirstID}: bandwidth})
	g := w.publishTo(rules, promises, bare)
	if err := g.AttachPace(); err != nil {
		t.Fatal(err)
	}
	join(t, w.room.Cgroup, os.Getpid())
	t.Cleanup(func() { join(t, filepath.Dir(w.room.Cgroup), os.Getpid()) })
	c := w.toSink("tcp4").(*net.TCPConn)
	s, err := w.room.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write := func(bytes int) {
		t.Helper()
		if _, err := c.Write(make([]byte, bytes)); err != nil {
			t.Fatal(err)
		}
	}
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
		write(fair.Newcomer / 10)
		acknowledged(t, c)
	}
	var most uint32
	before, _ := passed()
	for range 50 {
		for range 40 {
			write(1)
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
	if room := tab().Tab.Room; room == 0 || room > bandwidth/8>>12 {
		t.Errorf("there is room for %d bytes on the tab below a limit of %g bit/s", room, float64(bandwidth))
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

// acknowledged waits until all that a connection sent is.
func acknowledged(t *testing.T, c *net.TCPConn) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		var info *unix.TCPInfo
		var err error
		descriptor(t, c, func(fd int) { info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO) })
		if err != nil {
			t.Fatal(err)
		}
		if info.Unacked == 0 && info.Notsent_bytes == 0 {
			return
		}
	}
	t.Fatal("what it sent is not acknowledged")
}
