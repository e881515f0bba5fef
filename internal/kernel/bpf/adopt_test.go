package bpf

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// adopt brings what is open at this end below the bounds of a generation. told is whether
// the kernel tells of all of it.
func (w *wire) adopt(g *Generation) (told bool) {
	w.t.Helper()
	a, err := g.Adoption(cgroupID(w.t, w.room.Cgroup), MemoryOptions{Send: 425984, Receive: 425984})
	if err != nil {
		w.t.Fatal(err)
	}
	defer a.Close()
	w.here.Do(func() {
		if err = a.Adopt(); errors.Is(err, ErrTooLate) {
			err = errors.Join(err, a.Squeeze())
		}
	})
	if err != nil && !errors.Is(err, ErrTooLate) {
		w.t.Fatal(err)
	}
	return err == nil
}

// hearing listens at the far end and accepts, and reads from when it is told to until the
// end of the test.
func (w *wire) hearing() (address string, listen func()) {
	w.t.Helper()
	l := w.listen(w.there, w.to4(0))
	told := make(chan struct{})
	listen = sync.OnceFunc(func() { close(told) })
	w.t.Cleanup(listen)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				<-told
				_, _ = io.Copy(io.Discard, c)
				c.Close()
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).String(), listen
}

// most watches for a time what the sockets at this end hold.
func (w *wire) most(long time.Duration) (most uint64) {
	w.t.Helper()
	for begin := time.Now(); time.Since(begin) < long; time.Sleep(50 * time.Millisecond) {
		most = max(most, holding(w.t, w.here))
	}
	return most
}

// TestAdopt has connections that are open when a bound comes.
func TestAdopt(t *testing.T) {
	testutil.Needs(t, "sock_ops", "late sockopts", "ss")
	const connections = 30
	bound := policy.TCPMemory{Soft: 2 << 20, Max: 4 << 20}
	claims := func(w *wire) map[string]plan.ContractID {
		return map[string]plan.ContractID{w.room.Cgroup: plan.FirstID}
	}
	bounds := map[plan.ContractID]policy.TCPMemory{plan.FirstID: bound}
	// held is whether all is within the bound for a while.
	held := func(t *testing.T, w *wire, g *Generation) {
		t.Helper()
		most := w.most(2 * time.Second)
		pools, err := g.Pools(map[string]plan.Contract{"": {ID: plan.FirstID, Serial: 1}})
		t.Logf("%d bytes at most; %+v %v", most, pools, err)
		if most > uint64(bound.Max)*11/10 {
			t.Errorf("%d bytes, the bound is %d", most, bound.Max)
		}
	}
	sockets := func(t *testing.T, g *Generation, want uint64) {
		t.Helper()
		pools, err := g.Pools(map[string]plan.Contract{"": {ID: plan.FirstID, Serial: 1}})
		if is := pools[plan.FirstID].Sockets; err != nil || is != want {
			t.Errorf("%d sockets, %v, want %d", is, err, want)
		}
	}

	t.Run("idle, then stuffed", func(t *testing.T) {
		w := newWire(t)
		c := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
		c.do("connect %d %s", connections, w.deaf())
		g := w.bounding(claims(w), bounds)
		told := w.adopt(g)
		if told {
			sockets(t, g, connections)
		} else {
			sockets(t, g, 0)
		}
		c.do("write")
		held(t, w, g)
	})
	t.Run("stuffed, then drained", func(t *testing.T) {
		w := newWire(t)
		c := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
		address, listen := w.hearing()
		c.do("stuff %d %s", connections, address)
		for begin := time.Now(); holding(t, w.here) < uint64(bound.Max)*5/4; time.Sleep(50 * time.Millisecond) {
			if time.Since(begin) > 20*time.Second {
				t.Fatalf("%d bytes after 20 s without a bound", holding(t, w.here))
			}
		}
		g := w.bounding(claims(w), bounds)
		w.adopt(g)
		listen()
		for begin := time.Now(); holding(t, w.here) > uint64(bound.Max); time.Sleep(50 * time.Millisecond) {
			if time.Since(begin) > 20*time.Second {
				t.Fatalf("%d bytes after 20 s of draining", holding(t, w.here))
			}
		}
		held(t, w, g)
	})
	t.Run("one that is quiet and could grow", func(t *testing.T) {
		w := newWire(t)
		c := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
		address, listen := w.hearing()
		listen()
		c.do("connect 1 %s", address)
		fd := borrow(t, c.pid)
		const soft = 512 << 10
		g := w.bounding(claims(w), map[plan.ContractID]policy.TCPMemory{plan.FirstID: {Soft: soft, Max: 2 * soft}})
		w.adopt(g)
		w.adopt(g) // twice is once
		c.do("write")
		for begin := time.Now(); time.Since(begin) < time.Second; time.Sleep(20 * time.Millisecond) {
			send, receive := bufferOf(t, fd, unix.SO_SNDBUF), bufferOf(t, fd, unix.SO_RCVBUF)
			if send+receive > soft {
				t.Fatalf("its buffers are %d and %d, soft is %d", send, receive, soft)
			}
		}
	})
	t.Run("a whole one, then a lower bound", func(t *testing.T) {
		w := newWire(t)
		w.bounding(claims(w), map[plan.ContractID]policy.TCPMemory{plan.FirstID: {Soft: 2 << 30, Max: 4 << 30}})
		c := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
		c.do("connect %d %s", connections, w.deaf())
		g := w.bounding(claims(w), bounds)
		sockets(t, g, connections)
		told := w.adopt(g)
		c.do("write")
		held(t, w, g)
		if told {
			sockets(t, g, connections)
		}
	})
	t.Run("twice", func(t *testing.T) {
		testutil.Needs(t, "late sock_ops")
		w := newWire(t)
		c := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
		c.do("connect %d %s", connections, w.deaf())
		g := w.bounding(claims(w), bounds)
		w.adopt(g)
		w.adopt(g)
		sockets(t, g, connections)
		c.do("close")
		for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			pools, err := g.Pools(map[string]plan.Contract{"": {ID: plan.FirstID, Serial: 1}})
			if err != nil {
				t.Fatal(err)
			}
			if p := pools[plan.FirstID]; p.Sockets == 0 && p.May == 0 {
				break
			} else if time.Since(begin) > 5*time.Second {
				t.Fatalf("%+v after all were closed", p)
			}
		}
	})
	t.Run("nobody's", func(t *testing.T) {
		w := newWire(t)
		other := testutil.Cgroup2(t)
		c := startChild(t, w.here, childOptions{cgroup: other})
		c.do("connect %d %s", connections, w.deaf())
		dirs := claims(w)
		dirs[other] = plan.FirstID // claimed, but not in the scope
		g := w.bounding(dirs, bounds)
		if !w.adopt(g) {
			t.Error("sockets out of the scope were counted")
		}
		sockets(t, g, 0)
	})
}

// TestHolding asks what a connection had before it came below a bound, which its application
// changes meanwhile.
func TestHolding(t *testing.T) {
	testutil.Needs(t, "sock_ops", "late sockopts", "ss")
	w := newWire(t)
	c := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
	address, listen := w.hearing()
	listen()
	c.do("connect 1 %s", address)
	fd := borrow(t, c.pid)
	before := [2]uint32{bufferOf(t, fd, unix.SO_SNDBUF), bufferOf(t, fd, unix.SO_RCVBUF)}
	const soft = 48 << 10
	g := w.bounding(map[string]plan.ContractID{w.room.Cgroup: plan.FirstID}, map[plan.ContractID]policy.TCPMemory{plan.FirstID: {Soft: soft, Max: 2 * soft}})
	s := sockets(t, w.room)
	if h, known := s.Holding(fd); known {
		t.Errorf("%+v before it was adopted", h)
	}
	told := w.adopt(g)
	same := func(h Holding, own [2]uint32, set bool) bool {
		return h == Holding{
			Bound:   true,
			Send:    HeldBuffer{Given: bufferOf(t, fd, unix.SO_SNDBUF), Own: own[0], Set: set},
			Receive: HeldBuffer{Given: bufferOf(t, fd, unix.SO_RCVBUF), Own: own[1], Set: set},
		}
	}
	if h, known := s.Holding(fd); !known || !same(h, before, false) || h.Send.Given >= before[0] || h.Receive.Given >= before[1] {
		t.Errorf("%+v, known %v; its buffers were %d", h, known, before)
	}
	if told {
		// This is what its application does, for the kernel.
		for _, option := range []int{unix.SO_SNDBUF, unix.SO_RCVBUF} {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 100<<10); err != nil {
				t.Fatal(err)
			}
		}
		c.do("write")
		for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			h, known := s.Holding(fd)
			if known && same(h, [2]uint32{200 << 10, 200 << 10}, true) && h.Send.Given <= soft && h.Receive.Given <= soft {
				break
			}
			if time.Since(begin) > 5*time.Second {
				t.Fatalf("%+v, known %v, after its application has set its buffers", h, known)
			}
		}
	}
	forget := func() {
		t.Helper()
		var err error
		w.here.Do(func() { err = s.ForgetHoldings() })
		if err != nil {
			t.Fatal(err)
		}
	}
	forget()
	if h, known := s.Holding(fd); !known {
		t.Errorf("%+v is forgotten, and its bound stands", h)
	}
	if err := s.ForgetPools(); err != nil {
		t.Fatal(err)
	}
	if h, known := s.Holding(fd); !known || h.Bound {
		t.Errorf("%+v, known %v, and its bound is gone", h, known)
	}
	forget()
	if h, known := s.Holding(fd); known {
		t.Errorf("%+v is not forgotten", h)
	}
	if err := s.ForgetHolding(fd); err != nil {
		t.Errorf("forget what is forgotten: %v", err)
	}
}

func bufferOf(t *testing.T, fd, option int) uint32 {
	t.Helper()
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, option)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}
