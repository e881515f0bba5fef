package agent

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/workload"
)

// bounding makes a generation with programs that hold what the bench's sockets may take.
func (b *bench) bounding(t *testing.T, bound policy.TCPMemory) *bpf.Generation {
	t.Helper()
	id, err := workload.CgroupID(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	rules := plan.Rules{
		Cgroups: map[uint64]plan.ContractID{id: plan.FirstID},
		Memory:  map[plan.ContractID]policy.TCPMemory{plan.FirstID: bound},
	}
	g, err := b.room().Begin(1, rules, bpf.Options{Controller: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Close()
		if err := b.room().Remove(); err != nil {
			t.Error(err)
		}
	})
	send, receive, err := workload.LargestBuffers()
	if err != nil {
		t.Fatal(err)
	}
	contracts := map[string]plan.Contract{"held": {ID: plan.FirstID, Serial: 1}}
	if err := errors.Join(g.Fill(rules), g.LoadMemory(rules, contracts, bpf.MemoryOptions{Send: send, Receive: receive}), g.AttachMemory()); err != nil {
		t.Fatal(err)
	}
	return g
}

// buffers is how large those of a process's connections to a port are, the largest of them.
func buffers(t *testing.T, pid int, port uint16) (send, receive uint32) {
	t.Helper()
	only := func(p workload.Process) bool { return int(p.PID) == pid }
	err := workload.EachSocket(t.Context(), only, func(_ workload.Process, s workload.Socket) error {
		if s.Protocol != unix.IPPROTO_TCP || s.Remote.Port() != port {
			return nil
		}
		out, err := workload.SendBuffer.Size(s.FD)
		in, err2 := workload.ReceiveBuffer.Size(s.FD)
		send, receive = max(send, out), max(receive, in)
		return errors.Join(err, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
	return send, receive
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// TestBuffersComeBack has a stream whose buffers TCP makes, and one whose application has
// set its own, before a bound and after; and takes the bound away again.
func TestBuffersComeBack(t *testing.T) {
	testutil.Needs(t, "sock_ops", "iperf3", "pidfd")
	const small, large = 192 << 10, 512 << 10
	const own = 150 << 10 // as it is asked for
	for name, before := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			if before {
				testutil.Needs(t, "late sockopts")
			}
			b := newBench(t)
			stream := func(port uint16, args ...string) (sizes func() (send, receive uint32)) {
				b.iperfServer(t, int(port))
				args = append([]string{"--client", b.far.IPv4.Addr().String(), "--port", fmt.Sprint(port), "--time", "300"}, args...)
				pid := start(t, b.here, b.dir, nil, "iperf3", args...).Process.Pid
				return func() (send, receive uint32) { return buffers(t, pid, port) }
			}
			var ofTCP, ofApplication func() (send, receive uint32)
			begin := func() {
				ofTCP, ofApplication = stream(5201), stream(5202, "--window", fmt.Sprint(own))
			}
			if before {
				begin()
				until(t, "TCP makes its buffer large", func() bool {
					send, _ := ofTCP()
					return send > large
				})
				until(t, "the application has set its own", func() bool {
					send, receive := ofApplication()
					return send == 2*own && receive == 2*own
				})
			}
			g := b.bounding(t, policy.TCPMemory{Soft: small, Max: 2 * small})
			if before {
				if err := b.adoptOpen(g); err != nil && !errors.Is(err, bpf.ErrTooLate) {
					t.Fatal(err)
				}
			} else {
				begin()
			}
			bounded := func() bool {
				for _, sizes := range []func() (send, receive uint32){ofTCP, ofApplication} {
					if send, receive := sizes(); send == 0 || send > small || receive > small {
						return false
					}
				}
				return true
			}
			until(t, "buffers are made small", bounded)
			time.Sleep(time.Second)
			if !bounded() {
				t.Error("buffers grow below a bound")
			}

			err := b.giveBuffersBack(t.Context())
			if err != nil && !errors.Is(err, workload.ErrLocked) {
				t.Fatal(err)
			}
			if b.room().MemoryAttached() {
				t.Error("tcp_memory runs")
			}
			if send, receive := ofApplication(); send != 2*own || receive != 2*own {
				t.Errorf("the application's own buffers are %d and %d, were %d", send, receive, 2*own)
			}
			if err != nil {
				return // said: TCP's own stay as they are
			}
			until(t, "TCP makes a buffer larger again", func() bool {
				send, _ := ofTCP()
				return send > large
			})
		})
	}
}

// TestOwnBufferWins gives back what was bounded, but not what the application has set since.
func TestOwnBufferWins(t *testing.T) {
	testutil.Needs(t, "root")
	for name, o := range map[string]struct {
		was  bpf.HeldBuffer
		is   uint32
		want uint32
		held bool // locked in the end
	}{
		"not fitted":              {bpf.HeldBuffer{}, 64 << 10, 64 << 10, true},
		"set since":               {bpf.HeldBuffer{Given: 32 << 10, Own: 256 << 10, Set: true}, 64 << 10, 64 << 10, true},
		"the application's own":   {bpf.HeldBuffer{Given: 32 << 10, Own: 256 << 10, Set: true}, 32 << 10, 256 << 10, true},
		"TCP's, which was larger": {bpf.HeldBuffer{Given: 32 << 10, Own: 256 << 10}, 32 << 10, 256 << 10, false},
		"TCP's, which has grown":  {bpf.HeldBuffer{Given: 32 << 10, Own: 16 << 10}, 32 << 10, 32 << 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			if err := workload.SendBuffer.SetSize(fd, o.is); err != nil {
				t.Fatal(err)
			}
			back := giveBack(&workload.SendBuffer, fd, o.was)
			if back != nil && !errors.Is(back, workload.ErrLocked) {
				t.Fatal(back)
			}
			if size, err := workload.SendBuffer.Size(fd); err != nil || size != o.want {
				t.Errorf("%d bytes, %v, want %d", size, err, o.want)
			}
			const soBufLock = 72
			locks, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soBufLock)
			if errors.Is(err, unix.ENOPROTOOPT) { // before 5.14
				if (back != nil) == o.held {
					t.Errorf("%v from a kernel that unlocks no buffer", back)
				}
				return
			}
			if err != nil || (locks != 0) != o.held || back != nil {
				t.Errorf("locks %d, %v, %v", locks, err, back)
			}
		})
	}
}
