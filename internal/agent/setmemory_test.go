package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// memory is the terms of a bound of TCP memory alone, of which soft is half; 0: none.
func memory(max policy.Size) Terms {
	return Terms{TCPMemory: &policy.TCPMemory{Soft: max / 2, Max: max}}
}

// poolOf is what the sockets of a workload hold together; nothing where it has no pool.
func (b *bench) poolOf(t *testing.T, name string) (p plan.Pool, known bool) {
	t.Helper()
	r, err := b.Scope.Load()
	if err != nil {
		t.Fatal(err)
	}
	pools, err := b.pools(r)
	if err != nil {
		t.Fatal(err)
	}
	p, known = pools[r.IDs.Names[name].ID]
	return p, known
}

// connected is how many connections this host has.
func (b *bench) connected(t *testing.T) int {
	t.Helper()
	return strings.Count(b.here.Output("ss", "-Htn", "state", "established"), "\n")
}

// TestSetMemory gives a process, or a cgroup, that stuffs connections a bound beside a policy
// with another one and without any, changes it, and takes it back.
func TestSetMemory(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "ss")
	const connections, each, tolerance = 100, 1 << 20, 1.1
	for name, other := range map[string]string{"process": "priority: 3", "cgroup": "tcp-memory: {max: 8MiB}"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir, group := b.makeCgroup(t, "held")
			text := fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none}}\nworkloads: {other: {match: [{cgroup: %s/other}], %s}}\n", b.link.Name, b.cgroup, other)
			b.apply(t, text)
			w, err := traffic.StartWorker(b.here.Path(), dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { w.Close() })
			pid, of := uint32(w.PID()), selector(t, group)
			set := setName(pid)
			give := func(terms Terms) error { return b.Set(context.Background(), pid, terms) }
			takeBack := func() error { return b.Clear(context.Background(), pid) }
			if name == "cgroup" {
				set = groupSetName(of)
				give = func(terms Terms) error { return b.SetGroup(context.Background(), of, terms) }
				takeBack = func() error { return b.ClearGroup(context.Background(), of) }
			}
			bounded := func(max policy.Size) {
				t.Helper()
				if err := give(memory(max)); err != nil {
					t.Fatal(err)
				}
			}
			held := func(max policy.Size) {
				t.Helper()
				peak, s := b.peakMemory(t, time.Second), status(t, b.Agent)
				p, _ := b.poolOf(t, set)
				t.Logf("%d bytes of %d connections below %s: %+v", peak, b.connected(t), max, p)
				if float64(peak) > float64(max)*tolerance || p.Sockets != connections {
					t.Errorf("%d bytes are held below %s: %+v", peak, max, p)
				}
				if terms := plan.MemoryTerms(*memory(max).TCPMemory); !s.OK || len(s.Sets) != 1 || s.Sets[0].Terms != terms || s.Sets[0].TCPMemory.Max != max {
					t.Errorf("want a set of %s, status is %+v", terms, s)
				}
			}
			free := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				if s := status(t, b.Agent); !s.OK || len(s.Sets) != 0 {
					t.Errorf("status: %+v", s)
				}
				if _, known := b.poolOf(t, set); known {
					t.Error("its pool is there")
				}
				if runs := b.room().MemoryAttached(); runs != strings.Contains(other, "tcp-memory") {
					t.Errorf("tcp_memory runs: %v", runs)
				}
				if d := b.apply(t, text); len(d) > 0 {
					t.Errorf("an apply changes %v", d)
				}
			}
			generation := b.generation(t)

			bounded(16 << 20)
			free(give(memory(0)))
			bounded(16 << 20)
			d := b.deaf(t)
			if err := w.Stuff(context.Background(), traffic.Where{To: d.at}, connections, each); err != nil {
				t.Fatal(err)
			}
			until(t, "all are connected", func() bool { p, _ := b.poolOf(t, set); return p.Sockets == connections })
			held(16 << 20)
			bounded(32 << 20)
			held(32 << 20)
			if now := b.generation(t); name == "process" && now != generation {
				t.Errorf("generation %d became %d", generation, now)
			}
			if late, err := feature.Has("late sock_ops"); err != nil || !late { // open connections would be in no pool
				free(takeBack())
				return
			}
			free(give(memory(0)))
			// Anew: one whose peer never reads asks for no more when it may.
			if err := w.Stuff(context.Background(), traffic.Where{To: d.at}, connections, each); err != nil {
				t.Fatal(err)
			}
			until(t, "all are connected, and take what they want", func() bool {
				return b.connected(t) == connections && float64(tcpMemory(t, b.here)) > tolerance*(16<<20)
			})
			bounded(16 << 20)
			d.hear()
			until(t, "they are within the bound as peers read", func() bool { p, _ := b.poolOf(t, set); return p.May <= 16<<20 })
			held(16 << 20)
			free(takeBack())
		})
	}
}

// A process that is given a bound has it in place of that of its workload, and beside those of
// the cgroups that it is in; its connections go from one to the other and back.
func TestSetMemoryBelow(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "late sock_ops")
	const connections = 20 // of 1 MiB each
	for name, match := range map[string]string{"user": "user: root", "cgroup": "cgroup: %s"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir, group := b.makeCgroup(t, "held")
			if name == "cgroup" {
				match = fmt.Sprintf(match, group)
			}
			b.apply(t, fmt.Sprintf("version: 1\nworkloads: {all: {match: [{%s}], tcp-memory: {max: 64MiB}}}\n", match))
			w, err := traffic.StartWorker(b.here.Path(), dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { w.Close() })
			if err := w.Stuff(context.Background(), traffic.Where{To: b.deaf(t).at}, connections, 1<<20); err != nil {
				t.Fatal(err)
			}
			pid := uint32(w.PID())
			in := func(name string, want uint64) {
				t.Helper()
				until(t, fmt.Sprintf("%d connections are in the pool of %s", want, name), func() bool {
					p, _ := b.poolOf(t, name)
					return p.Sockets == want && (want > 0 || p.May == 0)
				})
			}
			above := map[string]uint64{"user": 0, "cgroup": connections}[name]
			in("all", connections)
			b.set(t, pid, memory(8<<20))
			in(setName(pid), connections)
			in("all", above)
			b.set(t, pid, priority(3))
			b.set(t, pid, memory(0))
			in("all", above)
			b.set(t, pid, memory(4<<30)) // all that they could take is set aside, but those are fitted already
			b.set(t, pid, memory(4<<20))
			in(setName(pid), connections)
			if err := b.Clear(context.Background(), pid); err != nil {
				t.Fatal(err)
			}
			in("all", connections)
			if s := status(t, b.Agent); !s.OK || len(s.Sets) != 0 {
				t.Errorf("status: %+v", s)
			}
		})
	}
}

// TestSetMemoryLowered gives a bound in which all that connections could take is set aside,
// and then one in which it is not, by which connections are refused.
func TestSetMemoryLowered(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "late sock_ops", "ss")
	b := newBench(t)
	dir, _ := b.makeCgroup(t, "held")
	b.apply(t, fmt.Sprintf("version: 1\nworkloads: {other: {match: [{cgroup: %s/other}], ingress: {max: 1Gbit}}}\n", b.cgroup))
	w, err := traffic.StartWorker(b.here.Path(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	pid := uint32(w.PID())
	b.set(t, pid, memory(64<<30))
	to := b.deaf(t).at
	if err := w.Stuff(context.Background(), traffic.Where{To: to}, 100, 1<<20); err != nil {
		t.Fatal(err)
	}
	until(t, "they take what they want", func() bool { return tcpMemory(t, b.here) > 16<<20 })
	if p, _ := b.poolOf(t, setName(pid)); p.Sockets != 100 || p.Throttled != 0 {
		t.Errorf("below a bound that has room for all: %+v", p)
	}
	low := policy.TCPMemory{Soft: 1 << 20, Max: 2 << 20, WhenFull: policy.WhenFullRefuse}
	b.set(t, pid, Terms{TCPMemory: &low})
	if p, _ := b.poolOf(t, setName(pid)); p.Sockets != 100 || p.May <= uint64(low.Max) {
		t.Errorf("what is queued already goes as peers read: %+v", p)
	}
	if err := w.Connect(context.Background(), traffic.Where{To: to}); err == nil {
		t.Error("a connection is made where there is no room for one")
	}
	if p, _ := b.poolOf(t, setName(pid)); p.Refused == 0 || p.Throttled == 0 {
		t.Errorf("one was refused: %+v", p)
	}
}

// TestMemoryOfMaker bounds a process by its number, whose connections are open and know nothing
// of who made them.
func TestMemoryOfMaker(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "late sock_ops")
	b := newBench(t)
	dir, _ := b.makeCgroup(t, "held")
	w, err := traffic.StartWorker(b.here.Path(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if err := w.Stuff(context.Background(), traffic.Where{To: b.deaf(t).at}, 20, 1<<20); err != nil {
		t.Fatal(err)
	}
	until(t, "they take what they want", func() bool { return tcpMemory(t, b.here) > 4<<20 })
	b.apply(t, fmt.Sprintf("version: 1\nworkloads: {held: {match: [{pid: %d}], tcp-memory: {max: 4MiB}}}\n", w.PID()))
	if p, _ := b.poolOf(t, "held"); p.Sockets != 20 {
		t.Errorf("its pool: %+v", p)
	}
}

// Where the kernel can hold no bound, the error says what it lacks, and nothing was changed.
func TestSetMemoryWithoutFeature(t *testing.T) {
	b := newBench(t)
	b.apply(t, b.policyText(ironPolicy))
	before, err := b.Basis()
	if err != nil {
		t.Fatal(err)
	}
	b.lack(t, func(f *plan.Features) { f.SockOps = false })
	for what, err := range map[string]error{
		"process": b.Set(context.Background(), sleeper(t), memory(1<<20)),
		"cgroup":  b.SetGroup(context.Background(), selector(t, b.cgroup+"/any"), memory(1<<20)),
	} {
		if !errors.Is(err, ErrNoBounds) || !strings.Contains(err.Error(), "no cgroup sock_ops") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after, err := b.Basis(); err != nil || after != before {
		t.Errorf("something is remembered, %v", err)
	}
}
