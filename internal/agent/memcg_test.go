package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/kernel/memcg"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// kmemTCP1 makes a cgroup of the v1 memory hierarchy that holds TCP memory, and returns its
// limit's file beside its directory.
func kmemTCP1(t *testing.T) (dir, limit string) {
	t.Helper()
	dir = testutil.Cgroup1(t, "memory")
	testutil.Needs(t, "kmem.tcp")
	return dir, filepath.Join(dir, "memory.kmem.tcp.limit_in_bytes")
}

// byMemcg is a policy that has the memory controller hold a cgroup.
func byMemcg(dir, max string) string {
	return fmt.Sprintf("version: 1\nworkloads:\n  held:\n    match: [{cgroup: memory:/%s}]\n    tcp-memory: {max: %s, via: memcg}\n", filepath.Base(dir), max)
}

func numberIn(t *testing.T, file string) uint64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMemcg has the memory controller hold a process that stuffs connections, and takes
// that back.
func TestMemcg(t *testing.T) {
	testutil.Needs(t, "ss")
	b := newBench(t)
	dir, limit := kmemTCP1(t)
	before := numberIn(t, limit)
	const most, connections = 16 << 20, 100
	b.apply(t, byMemcg(dir, "64MiB"))
	b.apply(t, byMemcg(dir, "16MiB"))
	if now := numberIn(t, limit); now != most {
		t.Errorf("its limit is %d", now)
	}
	w, err := traffic.StartWorker(b.here.Path(), b.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), strconv.AppendInt(nil, int64(w.PID()), 10), 0); err != nil {
		t.Fatal(err)
	}
	d := b.deaf(t)
	if err := w.Send(context.Background(), traffic.Where{To: d.at}, connections); err != nil {
		t.Fatal(err)
	}
	peak, j := b.peakMemory(t, 2*time.Second), b.judgedMemory(t)
	t.Logf("%d bytes; %s", peak, j.Evidence)
	// A connection may have a segment where all is in use.
	if peak > most+connections*74<<10 || peak < most/2 || j.Memory.Bound != (policy.TCPMemory{Max: most, Via: policy.MemoryViaMemcg}) ||
		j.Memory.Pool.May > peak || j.Memory.Pool.May < most/2 {
		t.Errorf("%d bytes held; status: %+v", peak, j)
	}
	if r := b.report(t, SocketQuery{Workload: "held"}); len(r.Holders) != 1 || r.Holders[0].Memory == nil || r.Holders[0].Memory.Pool.May < most/2 {
		t.Errorf("sockets of the workload: %+v", r.Holders)
	}
	if x, err := b.ExplainPID(context.Background(), uint32(w.PID())); err != nil || x.Workload != "held" ||
		!strings.HasSuffix(strings.Join(x.Promises, "\n"), ": tcp-memory at most 16MiB by memcg") {
		t.Errorf("explained: %q: %q, %v", x.Workload, x.Promises, err)
	}
	if _, err := b.tryApply(byMemcg(dir, "1MiB")); !errors.Is(err, memcg.ErrInUse) || !errors.Is(err, ErrRolledBack) {
		t.Errorf("below what is held: %v", err)
	}
	b.inForce(t, byMemcg(dir, "16MiB"), "after the refusal")

	d.hear()
	if _, err := w.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	until(t, "its sockets are gone", func() bool { return b.judgedMemory(t).Memory.Pool.May < 1<<20 })
	for what, drift := range map[string]func() error{
		"another limit": func() error { return os.WriteFile(limit, []byte("-1"), 0) },
		"a birth":       func() error { return os.Mkdir(filepath.Join(dir, "born"), 0o755) },
	} {
		if err := drift(); err != nil {
			t.Fatal(err)
		}
		if j := b.judgedMemory(t); j.Verdict != plan.Broken {
			t.Errorf("%s: status %+v", what, j)
		}
		if changes := b.apply(t, byMemcg(dir, "16MiB")); len(changes) != 1 {
			t.Errorf("%s: an apply changes %v", what, changes)
		}
		if j := b.judgedMemory(t); j.Verdict != plan.Kept {
			t.Errorf("%s mended: status %+v", what, j)
		}
	}
	b.apply(t, strings.Replace(byMemcg(dir, "16MiB"), ", via: memcg", "", 1))
	if now := numberIn(t, limit); now != before || !b.room().MemoryAttached() {
		t.Errorf("its limit is %d, was %d", now, before)
	}
	b.apply(t, byMemcg(dir, "16MiB"))
	if now := numberIn(t, limit); now != most || b.room().MemoryAttached() {
		t.Errorf("its limit is %d", now)
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if now := numberIn(t, limit); now != before {
		t.Errorf("its limit is %d, was %d", now, before)
	}
}

// TestKilledMemcg is TestKilledApply of a bound that the memory controller holds.
func TestKilledMemcg(t *testing.T) {
	b := newBench(t)
	dir, limit := kmemTCP1(t)
	before := numberIn(t, limit)
	b.apply(t, byMemcg(dir, "8MiB"))
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, v := range []victim{{Verb: "apply", Policy: byMemcg(dir, "4MiB")}, {Verb: "reset"}} {
		for v.KillAt = 1; ; v.KillAt++ {
			b.apply(t, byMemcg(dir, "8MiB"))
			if !b.suffer(t, v) {
				break
			}
			if s, err := b.Status(context.Background()); err != nil || s.Unfinished == nil || s.OK {
				t.Fatalf("%s, place %d: status %+v, %v", v.Verb, v.KillAt, s, err)
			}
			if v.KillAt%2 == 0 {
				if _, err := b.tryApply(byMemcg(dir, "2MiB")); err != nil {
					t.Fatalf("%s, place %d: apply: %v", v.Verb, v.KillAt, err)
				}
				if now := numberIn(t, limit); now != 2<<20 {
					t.Fatalf("%s, place %d: its limit is %d", v.Verb, v.KillAt, now)
				}
			}
			if err := b.Reset(context.Background()); err != nil {
				t.Fatalf("%s, place %d: reset: %v", v.Verb, v.KillAt, err)
			}
			if now := numberIn(t, limit); now != before {
				t.Fatalf("%s, place %d: its limit is %d, was %d", v.Verb, v.KillAt, now, before)
			}
		}
		if v.KillAt < 5 {
			t.Errorf("%s: only %d places to break off", v.Verb, v.KillAt)
		}
	}
}
