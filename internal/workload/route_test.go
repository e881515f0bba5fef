package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// A running flow stays in its transmit queue when the choice of queues changes,
// here by XPS instead of mqprio, and leaves it at once when its route is reset.
func TestResetRoute(t *testing.T) {
	testutil.Needs(t, "root", "veth link", "mq qdisc", "tbf qdisc", "tc")
	for _, arm := range []struct {
		name    string
		network string
		multi   bool
		mark    int
		reset   func(int) error
	}{
		{"tcp4", "tcp4", false, 0, ResetRoute},
		{"tcp6 marked", "tcp6", false, 7, ResetRoute},
		{"tcp4 by mark", "tcp4", false, 0, toggleMark},
		{"tcp6 by mark, marked", "tcp6", false, -2, toggleMark},
		{"udp4", "udp4", false, 0, ResetRoute},
		{"udp6 by mark", "udp6", false, 7, toggleMark},
		{"mptcp", "tcp4", true, 5, ResetRoute},
	} {
		t.Run(arm.name, func(t *testing.T) {
			q := newQueues(t, "mq")
			q.steer(0)
			fd := q.stream(arm.network, arm.multi, arm.mark)
			if moved := q.sent(2); moved > noise || q.sent(0) < 10*noise {
				t.Fatalf("queue 0 sent %d, queue 2 %d bytes; the flow is not where XPS put it", q.sent(0), moved)
			}
			q.steer(2)
			time.Sleep(200 * time.Millisecond)
			if moved := q.sent(2); moved > noise {
				t.Fatalf("queue 2 sent %d bytes before the reset: the flow was not bound to its queue", moved)
			}
			if err := arm.reset(fd); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool { return q.sent(2) > 20*noise })
			mark, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK)
			if err != nil || int32(mark) != int32(arm.mark) {
				t.Errorf("mark %#x, %v after the reset; want %#x", mark, err, arm.mark)
			}
			if bound, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX); err != nil || bound != 0 {
				t.Errorf("bound to device %d, %v after the reset", bound, err)
			}
		})
	}
}

// On mqprio a running flow ignores a change of SO_PRIORITY for as long as
// something of it waits, and follows it when its route is reset.
func TestResetRouteOnMQPrio(t *testing.T) {
	testutil.Proves(t, testutil.Follow)
	testutil.By(t, "mqprio")
	testutil.Needs(t, "root", "veth link", "mqprio qdisc", "tbf qdisc", "tc")
	q := newQueues(t, "mqprio num_tc 4 map 0 1 2 3 0 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 hw 0")
	fd := q.stream("tcp4", false, 0)
	if moved := q.sent(2); moved > noise || q.sent(0) < 10*noise {
		t.Fatalf("queue 0 sent %d, queue 2 %d bytes; the flow is not in the class of priority 0", q.sent(0), moved)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, 2); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if moved := q.sent(2); moved > noise {
		t.Fatalf("class 2 sent %d bytes before the reset: a plain change was enough", moved)
	}
	if err := ResetRoute(fd); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return q.sent(2) > 20*noise })
}

// noise is how many bytes neighbour discovery and the like may send.
const noise = 2000

// queues is a veth with four transmit queues, each slow enough to keep a
// backlog, so that TCP may not change over by itself: it has two segments of
// some 45 KB in a queue at a time, which take 0.7 seconds. What else would let go
// of the queue is switched off: the choice of once a second, from 6.19 on, and the
// search for duplicate addresses, whose end lets all IPv6 routes be looked up anew.
type queues struct {
	t    *testing.T
	a, b testutil.End
}

// newQueues puts a root qdisc with a class for each queue on the veth.
func newQueues(t *testing.T, root string) queues {
	t.Helper()
	left, right := testutil.NewNamespace(t), testutil.NewNamespace(t)
	left.Output("sh", "-c", `cd /proc/sys/net
		echo 32 > ipv4/tcp_min_tso_segs
		echo 0 > ipv6/conf/default/accept_dad
		[ ! -e core/txq_reselection_ms ] || echo 0 > core/txq_reselection_ms`)
	a, b := testutil.Veth(t, left, right, testutil.VethOptions{Queues: 4})
	left.Output("tc", append([]string{"qdisc", "add", "dev", a.Name, "root", "handle", "1:"}, strings.Fields(root)...)...)
	for i := range 4 {
		left.Output("tc", "qdisc", "add", "dev", a.Name, "parent", fmt.Sprintf("1:%x", i+1), "handle", fmt.Sprintf("1%x:", i+1),
			"tbf", "rate", "1mbit", "burst", "32k", "limit", "4m")
	}
	return queues{t, a, b}
}

// steer makes all CPUs choose one queue.
func (q queues) steer(queue int) {
	q.t.Helper()
	script := "mount -t sysfs none /sys && cd /sys/class/net/" + q.a.Name + "/queues"
	for i := range 4 {
		mask := "0"
		if i == queue {
			mask = "3"
		}
		script += fmt.Sprintf(" && echo %s > tx-%d/xps_cpus", mask, i)
	}
	q.a.NS.Output("unshare", "-m", "sh", "-c", script)
}

// sent reads from tc how many bytes went through a queue.
func (q queues) sent(queue int) uint64 {
	q.t.Helper()
	var qdiscs []struct {
		Handle string
		Bytes  uint64
	}
	out := q.a.NS.Output("tc", "-s", "-j", "qdisc", "show", "dev", q.a.Name)
	if err := json.Unmarshal([]byte(out), &qdiscs); err != nil {
		q.t.Fatal(err)
	}
	for _, qdisc := range qdiscs {
		if qdisc.Handle == fmt.Sprintf("1%x:", queue+1) {
			return qdisc.Bytes
		}
	}
	q.t.Fatalf("queue %d is not in %s", queue, out)
	return 0
}

// stream sends from a to b as fast as it can until the test ends and returns
// the descriptor of the sending socket.
func (q queues) stream(network string, multi bool, mark int) int {
	q.t.Helper()
	local, remote := q.a.IPv4.Addr(), q.b.IPv4.Addr()
	if strings.HasSuffix(network, "6") {
		local, remote = q.a.IPv6.Addr(), q.b.IPv6.Addr()
	}
	target := netip.AddrPortFrom(remote, 4711).String()
	var sink func()
	var conn net.Conn
	var err error
	q.b.NS.Do(func() {
		if strings.HasPrefix(network, "udp") {
			var packets net.PacketConn
			if packets, err = net.ListenPacket(network, target); err == nil {
				sink = func() { packets.Close() }
			}
			return
		}
		var config net.ListenConfig
		config.SetMultipathTCP(multi)
		var listener net.Listener
		if listener, err = config.Listen(context.Background(), network, target); err == nil {
			sink = drain(listener)
		}
	})
	if err != nil {
		q.t.Fatal(err)
	}
	q.t.Cleanup(sink)
	// A full buffer keeps the queue busy while this process waits for its turn on
	// the CPU. That of UDP lies in the queue itself, and takes a second.
	buffer := 1 << 20
	if strings.HasPrefix(network, "udp") {
		buffer = 128 << 10
	}
	q.a.NS.Do(func() {
		dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			controlErr := c.Control(func(fd uintptr) {
				err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, mark),
					unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer))
			})
			return errors.Join(err, controlErr)
		}}
		dialer.SetMultipathTCP(multi)
		conn, err = dialer.Dial(network, target)
	})
	if err != nil {
		q.t.Fatalf("connect %s to %s: %v", local, target, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pump(conn)
	}()
	q.t.Cleanup(func() { conn.Close(); <-done })
	time.Sleep(100 * time.Millisecond) // past slow start: the queue is full
	return descriptor(q.t, conn)
}

// pump writes until the connection is closed.
func pump(conn net.Conn) {
	chunk := make([]byte, 1400)
	for {
		if _, err := conn.Write(chunk); err != nil {
			return
		}
	}
}

// drain reads what the first client sends. The function that it returns ends
// that, whatever is still on its way.
func drain(listener net.Listener) (stop func()) {
	conns, done := make(chan net.Conn, 1), make(chan struct{})
	go func() {
		defer close(done)
		defer close(conns)
		if conn, err := listener.Accept(); err == nil {
			conns <- conn
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	return func() {
		listener.Close()
		if conn, ok := <-conns; ok {
			conn.Close()
		}
		<-done
	}
}

func descriptor(t *testing.T, conn net.Conn) int {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	fd := -1
	if err := raw.Control(func(f uintptr) { fd = int(f) }); err != nil {
		t.Fatal(err)
	}
	return fd
}

// A listener's mark is inherited by what it accepts in that moment, so it is
// never touched, nor is what has no queue.
func TestResetRouteLeavesOthersAlone(t *testing.T) {
	testutil.Needs(t, "root")
	testutil.Netns(t)
	for name, open := range map[string]func() (int, error){
		"listener": func() (int, error) {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				err = unix.Listen(fd, 1)
			}
			return fd, err
		},
		"udp, not connected": func() (int, error) { return unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) },
		"raw": func() (int, error) {
			return unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		},
		"unix": func() (int, error) { return unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) },
	} {
		fd, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if err := ResetRoute(fd); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		unix.Close(fd)
	}
	if err := ResetRoute(-1); err == nil {
		t.Error("no error for a descriptor that is none")
	}
}
