package bpf

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

func TestTags(t *testing.T) {
	testutil.Proves(t, testutil.Tag)
	testutil.Needs(t, "raw_tracepoint", "BTF")
	w := newWire(t)
	o := bare
	o.Births = true
	w.publish(noRules(), o)
	s := sockets(t, w.room)
	c := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
	c.do("open %s", w.to4(4000))
	tag(t, s, c.pid, plan.FirstID+1)
	t.Run("new socket", func(t *testing.T) {
		w.expect(firstClass+1, 1, func() { c.do("udp %s", w.to4(4000)) })
	})
	t.Run("open socket is not touched by the task's tag", func(t *testing.T) {
		w.expect(ladderClass, 1, func() { c.do("send") })
	})
	t.Run("child over fork and exec, until its exit", func(t *testing.T) {
		child := c.do("spawn")
		w.expect(firstClass+1, 1, func() { c.do("udp %s", w.to4(4000)) })
		tags := tasks(t, s)
		if len(tags) != 2 || tags[atoi(t, child)] == 0 {
			t.Fatalf("tags %v, want those of %d and %s", tags, c.pid, child)
		}
		c.do("exit")
		// The parent says ok when it has waited for the child.
		if tags := tasks(t, s); len(tags) != 1 || tags[uint32(c.pid)] == 0 {
			t.Fatalf("tags %v after the child's exit, want that of %d alone", tags, c.pid)
		}
	})
	t.Run("running connection by its descriptor", func(t *testing.T) {
		fd := borrow(t, c.pid)
		w.expect(ladderClass, 1, func() { c.do("send") })
		id := Identity{Tag: plan.Contract{ID: plan.FirstID + 2, Serial: 1}.Tag()}
		// As of one that also receives.
		if err := s.arrivals.Put(uint32(fd), linkEgressKnown{}); err != nil {
			t.Fatal(err)
		}
		if changed, err := s.Identify(fd, id); err != nil || !changed {
			t.Fatalf("tag socket: changed %v, %v", changed, err)
		}
		if err := s.arrivals.Lookup(uint32(fd), new(linkEgressKnown)); !errors.Is(err, ebpf.ErrKeyNotExist) {
			t.Errorf("what it receives under: %v", err)
		}
		if changed, err := s.Identify(fd, id); err != nil || changed {
			t.Fatalf("tag socket again: changed %v, %v", changed, err)
		}
		s.Settle()
		w.expect(firstClass+2, 1, func() { c.do("send") })
		if id, _, known := s.Verdict(fd); !known || id != plan.FirstID+2 {
			t.Fatalf("verdict %d, known %v", id, known)
		}
		if _, err := s.Identify(fd, Identity{}); err != nil {
			t.Fatal(err)
		}
		s.Settle()
		w.expect(ladderClass, 1, func() { c.do("send") })
	})
	t.Run("threads end, and one calls exec", func(t *testing.T) {
		c.do("thread")
		c.do("exec")
		if tags := tasks(t, s); len(tags) != 1 || tags[uint32(c.pid)] == 0 {
			t.Fatalf("tags %v, want that of %d", tags, c.pid)
		}
		w.expect(firstClass+1, 1, func() { c.do("udp %s", w.to4(4000)) })
	})
	t.Run("dead contract", func(t *testing.T) {
		tag(t, s, c.pid, plan.FirstID+3)
		l := w.promises()
		l.Contracts[plan.FirstID+3] = plan.Promise{Priority: class(firstClass + 3), Serial: 2}
		c.do("open %s", w.to4(4000)) // by the old contract's tag
		w.publishTo(noRules(), l, o)
		w.expect(ladderClass, 1, func() { c.do("send") })
	})
}

// TestTagOfTheDead leaves tags on numbers that no process has: who gets such a
// number is nobody's child.
func TestTagOfTheDead(t *testing.T) {
	testutil.Needs(t, "raw_tracepoint", "BTF")
	w := newWire(t)
	o := bare
	o.Births = true
	w.publish(noRules(), o)
	s := sockets(t, w.room)
	last, top := number(t, "/proc/sys/kernel/ns_last_pid"), number(t, "/proc/sys/kernel/pid_max")
	tagged := map[int]bool{}
	for i := range 2000 { // others make threads and processes meanwhile
		pid := last + 1 + i
		if pid >= top {
			pid -= top - 300 // where the kernel begins anew
		}
		tagged[pid] = true
		tag(t, s, pid, plan.FirstID+1)
	}
	c := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
	if !tagged[c.pid] {
		t.Fatalf("the child is %d, not one of the next 2000 after %d", c.pid, last)
	}
	if tags := tasks(t, s); tags[uint32(c.pid)] != 0 {
		t.Errorf("child %d inherited a tag of nobody's", c.pid)
	}
	w.expect(ladderClass, 1, func() { c.do("udp %s", w.to4(4000)) })
}

func number(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(atoi(t, strings.TrimSpace(string(text))))
}

// TestTagListener tags listeners: what is accepted inherits, and the SYN-ACK that
// has no socket yet goes with it. Over MPTCP the descriptor is not the socket
// whose packets leave; most clients of an MPTCP listener speak plain TCP.
func TestTagListener(t *testing.T) {
	for name, c := range map[string]struct{ listen, dial bool }{
		"TCP": {}, "TCP to MPTCP listener": {listen: true}, "MPTCP": {listen: true, dial: true},
	} {
		t.Run(name, func(t *testing.T) {
			testutil.Proves(t, testutil.Tag)
			if c.listen {
				testutil.Needs(t, "MPTCP")
			}
			w := newWire(t)
			// What goes without a tag is known by it.
			w.publish(flowRules([]plan.Tuple{{Fields: plan.FieldProtocol}}, plan.FlowKey{Protocol: unix.IPPROTO_TCP}), bare)
			s := sockets(t, w.room)
			var config net.ListenConfig
			config.SetMultipathTCP(c.listen)
			var l net.Listener
			var err error
			w.here.Do(func() { l, err = config.Listen(t.Context(), "tcp4", w.link.IPv4.Addr().String()+":0") })
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			identify := func(of syscall.Conn, id plan.ContractID) {
				descriptor(t, of, func(fd int) {
					if _, err := s.Identify(fd, Identity{Tag: plan.Contract{ID: id, Serial: 1}.Tag()}); err != nil {
						t.Error(err)
					}
				})
				s.Settle()
			}
			dial := func() net.Conn {
				var d net.Dialer
				d.SetMultipathTCP(c.dial)
				var conn net.Conn
				w.there.Do(func() { conn, err = d.DialContext(t.Context(), "tcp4", l.Addr().String()) })
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				return conn
			}
			identify(l.(syscall.Conn), plan.FirstID+1)
			w.expect(firstClass+1, 4, func() {
				far := dial()
				exchange(t, accept(t, l), far)
			})
			w.quiet()
			identify(l.(syscall.Conn), plan.FirstID+2)
			var a net.Conn
			w.expect(firstClass+2, 2, func() {
				far := dial()
				a = accept(t, l)
				answer(t, far, a)
			})
			w.quiet()
			identify(a.(syscall.Conn), plan.FirstID+3)
			w.expect(firstClass+3, 1, func() {
				if _, err := a.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
			})
			w.expect(firstClass+3, 0, w.quiet)
		})
	}
}

// answer sends a byte one way.
func answer(t *testing.T, from, to net.Conn) {
	t.Helper()
	if _, err := from.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(to, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func sockets(t *testing.T, r Room) *Sockets {
	t.Helper()
	s, err := r.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func tag(t *testing.T, s *Sockets, pid int, id plan.ContractID) {
	t.Helper()
	if err := s.TagTask(uint32(pid), plan.Contract{ID: id, Serial: 1}.Tag()); err != nil {
		t.Fatal(err)
	}
}

func tasks(t *testing.T, s *Sockets) map[uint32]uint32 {
	t.Helper()
	all, err := s.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func atoi(t *testing.T, text string) uint32 {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// borrow duplicates the first inet socket of another process.
func borrow(t *testing.T, pid int) int {
	t.Helper()
	return borrowOne(t, pid, func(int) bool { return true })
}

// borrowOne is borrow for the first one of some.
func borrowOne(t *testing.T, pid int, of func(fd int) bool) int {
	t.Helper()
	testutil.Needs(t, "pidfd")
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p)
	for target := range 64 {
		fd, err := unix.PidfdGetfd(p, target, 0)
		if err != nil {
			continue
		}
		if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && domain == unix.AF_INET && of(fd) {
			t.Cleanup(func() { unix.Close(fd) })
			return fd
		}
		unix.Close(fd)
	}
	t.Fatalf("process %d has no such inet socket", pid)
	return -1
}
