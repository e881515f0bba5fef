package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/kernel/steer"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/testutil"
)

// newSteerBench is a bench whose link has two queues, one of which hands its packets to CPU 0
// and remembers flows, as somebody has set it.
func newSteerBench(t *testing.T) *bench {
	t.Helper()
	b := newBenchOn(t, testutil.VethOptions{Queues: 2})
	b.write(t, "rx-0/rps_cpus", "1")
	b.write(t, "rx-0/rps_flow_cnt", "32")
	return b
}

// inSysfs hands over the directory of the link's queues.
func (b *bench) inSysfs(t *testing.T, fn func(queues string) error) {
	t.Helper()
	var err error
	b.here.Do(func() {
		err = steer.InSysfs(func(root string) error {
			name, err := steer.NameOf(b.link.Index)
			if err != nil {
				return err
			}
			return fn(root + "/class/net/" + name + "/queues/")
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// write sets what a queue has, as anybody does.
func (b *bench) write(t *testing.T, file, value string) {
	t.Helper()
	b.inSysfs(t, func(queues string) error { return os.WriteFile(queues+file, []byte(value), 0) })
}

// spread is how the kernel hands out the link's packets, and whether Weir remembers something.
func (b *bench) spread(t *testing.T) string {
	t.Helper()
	var all []string
	b.inSysfs(t, func(queues string) error {
		for _, file := range []string{"rx-0/rps_cpus", "rx-0/rps_flow_cnt", "rx-1/rps_cpus", "rx-1/rps_flow_cnt"} {
			text, err := os.ReadFile(queues + file)
			if err != nil {
				return err
			}
			all = append(all, strings.TrimSpace(string(text)))
		}
		return nil
	})
	_, err := os.Stat(b.Scope.Run + "/state.json")
	return fmt.Sprint(strings.Join(all, " "), ", record: ", err == nil)
}

var rpsOff = plan.SteerAsk{CPU: plan.NoCPU, Queue: plan.NoQueue}

// TestSteer has each CPU handle real packets that are sent on another one where there is one.
func TestSteer(t *testing.T) {
	b := newSteerBench(t)
	before := b.spread(t)
	online, err := plan.ParseCPUs(strings.TrimSpace(readFile(t, "/sys/devices/system/cpu/online")))
	if err != nil {
		t.Fatal(err)
	}
	for i, cpu := range []int{online[0], online[len(online)-1]} {
		done, err := b.Steer(context.Background(), b.link.Name, plan.SteerAsk{CPU: cpu, Queue: plan.NoQueue})
		if err != nil {
			t.Fatal(err)
		}
		if len(done.Changes) < 2 || *done.CPU != cpu || done.Queue != nil {
			t.Errorf("done: %+v", done)
		}
		s, err := b.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Steered) != 1 || s.Steered[0].Link != b.link.Name || *s.Steered[0].CPU != cpu || len(s.Steered[0].Changed) != 0 || !s.OK {
			t.Errorf("status: %+v", s)
		}
		if handled := b.handledBy(t, online[(1-i)*(len(online)-1)]); len(handled) != 1 || handled[cpu] == 0 {
			t.Errorf("steered to CPU %d, packets are handled by %v", cpu, handled)
		}
		if _, err := b.Steer(context.Background(), b.link.Name, rpsOff); !errors.Is(err, ErrSteered) {
			t.Errorf("once more: %v", err)
		}
		if links, err := b.Unsteer(context.Background(), ""); err != nil || !slices.Equal(links, []string{b.link.Name}) {
			t.Errorf("undo: %v, %v", links, err)
		}
		if diff := cmp.Diff(before, b.spread(t)); diff != "" {
			t.Fatalf("after CPU %d (-want +got)\n%s", cpu, diff)
		}
	}
	if _, err := b.Unsteer(context.Background(), b.link.Name); !errors.Is(err, ErrNotSteered) {
		t.Errorf("undo of nothing: %v", err)
	}
	if links, err := b.Unsteer(context.Background(), ""); err != nil || len(links) != 0 {
		t.Errorf("undo of all of nothing: %v, %v", links, err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// handledBy has the far end send from a CPU, and says how many packets each CPU brought to
// their socket.
func (b *bench) handledBy(t *testing.T, sender int) map[int]int {
	t.Helper()
	open := func(ns *testutil.Namespace, local, remote testutil.End) (c *net.UDPConn) {
		t.Helper()
		const port = 4000
		var err error
		ns.Do(func() {
			c, err = net.DialUDP("udp4", &net.UDPAddr{IP: local.IPv4.Addr().AsSlice(), Port: port}, &net.UDPAddr{IP: remote.IPv4.Addr().AsSlice(), Port: port})
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	to, from := open(b.here, b.link, b.far), open(b.there, b.far, b.link)
	defer to.Close()
	defer from.Close()
	raw, err := to.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	handled, buf := map[int]int{}, make([]byte, 64)
	b.there.Do(func() { // on a thread that is not used again: it stays where it is
		var only unix.CPUSet
		only.Set(sender)
		if err = unix.SchedSetaffinity(0, &only); err != nil {
			return
		}
		_ = to.SetReadDeadline(time.Now().Add(10 * time.Second))
		for range 200 {
			if _, err = from.Write([]byte("packet")); err != nil {
				return
			}
			if _, err = to.Read(buf); err != nil {
				return
			}
			var cpu int
			var asked error
			err = raw.Control(func(fd uintptr) { cpu, asked = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_INCOMING_CPU) })
			if err = errors.Join(err, asked); err != nil {
				return
			}
			handled[cpu]++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return handled
}

// TestSteerOthers: what others change while a link is steered stays, a device may be renamed and go,
// and a policy comes and goes beside it.
func TestSteerOthers(t *testing.T) {
	b := newSteerBench(t)
	ctx := context.Background()
	if _, err := b.Steer(ctx, b.link.Name, rpsOff); err != nil {
		t.Fatal(err)
	}
	b.write(t, "rx-0/rps_flow_cnt", "16")
	rename(t, b, "renamed")
	s, err := b.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if want := "flows that queue 0 remembers (RFS) is 16"; len(s.Steered) != 1 || s.Steered[0].Link != "renamed" || !slices.Equal(s.Steered[0].Changed, []string{want}) {
		t.Errorf("status: %+v", s.Steered)
	}
	proof := b.apply(t, b.policyText(goldPolicy))
	if err := b.Rollback(ctx, "test"); err == nil || len(proof) == 0 {
		t.Errorf("apply: %v, rollback: %v", proof, err)
	}
	if links, err := b.Unsteer(ctx, "renamed"); err != nil || !slices.Equal(links, []string{"renamed"}) {
		t.Errorf("undo: %v, %v", links, err)
	}
	if got := b.spread(t); !strings.HasSuffix(got, "1 16 0 0, record: true") {
		t.Errorf("left: %s", got)
	}
	if s, err := b.Status(ctx); err != nil || s.Proved == nil || !s.OK {
		t.Errorf("the policy is not proved any more: %+v, %v", s, err)
	}

	// A device that is gone has nothing to put back.
	if _, err := b.Steer(ctx, "renamed", rpsOff); err != nil {
		t.Fatal(err)
	}
	b.here.Do(func() {
		l, err := netlink.LinkByName("renamed")
		if err == nil {
			err = netlink.LinkDel(l)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if s, err := b.Status(ctx); err != nil || len(s.Steered) != 1 || !slices.Equal(s.Steered[0].Changed, []string{"the device is gone"}) {
		t.Errorf("status: %+v, %v", s, err)
	}
	if err := b.Reset(ctx); err != nil {
		t.Error(err)
	}
}

func rename(t *testing.T, b *bench, name string) {
	t.Helper()
	var err error
	b.here.Do(func() {
		var l netlink.Link
		if l, err = netlink.LinkByIndex(b.link.Index); err == nil {
			err = errors.Join(netlink.LinkSetDown(l), netlink.LinkSetName(l, name), netlink.LinkSetUp(l)) // older kernels rename what is down
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.link.Name = name
}

// TestSteerRefused: what can not be is said, and nothing has changed.
func TestSteerRefused(t *testing.T) {
	b := newSteerBench(t)
	before := b.spread(t)
	ask := func(link string, ask plan.SteerAsk) error {
		_, err := b.Steer(context.Background(), link, ask)
		return err
	}
	var unusable *steer.UnusableCPU
	if err := ask(b.link.Name, plan.SteerAsk{CPU: 4000, Queue: plan.NoQueue}); !errors.As(err, &unusable) {
		t.Error(err)
	}
	if err := ask("none", rpsOff); !errors.Is(err, steer.ErrNoDevice) {
		t.Error(err)
	}
	for _, bad := range []plan.SteerAsk{{Queue: 2}, {Queue: 0}, {Queue: plan.NoQueue, MACs: []plan.MAC{{1}}}, {Queue: plan.NoQueue, Move: true}} {
		if err := ask(b.link.Name, bad); !errors.Is(err, plan.ErrNotSteered) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := ask("lo", rpsOff); !errors.Is(err, plan.ErrNotSteered) {
		t.Error(err)
	}
	// Where a step fails all is taken back.
	broken := errors.New("broken")
	for place := 1; ; place++ {
		n := 0
		b.Before = func(int, string) error {
			if n++; n == place {
				return broken
			}
			return nil
		}
		err := ask(b.link.Name, plan.SteerAsk{Queue: plan.NoQueue})
		b.Before = nil
		if err == nil {
			break
		}
		if !errors.Is(err, broken) || !errors.Is(err, ErrRolledBack) {
			t.Errorf("place %d: %v", place, err)
		}
		if diff := cmp.Diff(before, b.spread(t)); diff != "" {
			t.Fatalf("place %d (-want +got)\n%s", place, diff)
		}
	}
}

// TestKilledSteering kills a steering, and the end of one, at every place, and ends each in
// another way.
func TestKilledSteering(t *testing.T) {
	testutil.Proves(t, testutil.Undo)
	b := newSteerBench(t)
	before, ctx := b.spread(t), context.Background()
	ask := plan.SteerAsk{Queue: plan.NoQueue} // CPU 0
	if _, err := b.Steer(ctx, b.link.Name, ask); err != nil {
		t.Fatal(err)
	}
	steered := b.spread(t)
	for _, verb := range []string{"steer", "unsteer"} {
		for place := 1; ; place++ {
			if verb == "steer" {
				_, _ = b.Unsteer(ctx, "")
			} else if _, err := b.Steer(ctx, b.link.Name, ask); err != nil && !errors.Is(err, ErrSteered) {
				t.Fatal(err)
			}
			if !b.suffer(t, victim{Verb: verb, Link: b.link.Name, KillAt: place}) {
				if place < 4 {
					t.Errorf("%s has %d places", verb, place-1)
				}
				break
			}
			s, err := b.Status(ctx)
			if err != nil || s.OK || s.Unfinished == nil {
				t.Fatalf("%s, place %d: status %+v, %v", verb, place, s, err)
			}
			want := before
			switch place % 4 {
			case 0:
				err = b.Reset(ctx)
			case 1:
				_, err = b.Unsteer(ctx, b.link.Name)
			case 2:
				_, err = b.Steer(ctx, b.link.Name, ask)
				want = steered
			case 3: // whatever changes something
				err = b.locked(func(r *state.Record) error { return b.Scope.Save(r) })
			}
			if err != nil {
				t.Fatalf("%s, place %d: %v", verb, place, err)
			}
			if diff := cmp.Diff(want, b.spread(t)); diff != "" {
				t.Fatalf("%s, place %d (-want +got)\n%s", verb, place, diff)
			}
			if s, err := b.Status(ctx); err != nil || !s.OK || s.Unfinished != nil {
				t.Fatalf("%s, place %d: status %+v, %v", verb, place, s, err)
			}
		}
	}
}
