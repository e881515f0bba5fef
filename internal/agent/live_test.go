package agent

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// heldAt fails the test unless so many Mbit/s leave, headers included; 0: more than any limit
// here.
func (b *bench) heldAt(t *testing.T, limit float64, left func(*testing.T, time.Duration) float64) {
	t.Helper()
	const packet = 8 * 64 << 10 / 1e6 / 4 // Mbit/s, over the time below
	time.Sleep(time.Second)
	rate, slowest := 0.0, 0.98*limit-packet
	if limit == 0 {
		slowest = 20
	}
	for range 4 { // a busy machine may send less, and never more
		if rate = left(t, 4*time.Second); limit != 0 && rate > 1.02*limit+packet {
			t.Errorf("%.3f Mbit/s left below a limit of %g", rate, limit)
		}
		if rate >= slowest {
			break
		}
	}
	t.Logf("%.3f of %g Mbit/s left", rate, limit)
	if rate < slowest {
		t.Errorf("%.3f Mbit/s left at most, of a limit of %g", rate, limit)
	}
}

// TestSetByTimes gives a process a limit where the kernel can not pace, changes it and takes
// it back, under load and all in one generation of the programs and one queue.
func TestSetByTimes(t *testing.T) {
	testutil.Proves(t, testutil.LimitQueued)
	testutil.By(t, string(policy.MethodEDT))
	needsTimes(t)
	for name, other := range map[string]string{"the only limit": "priority: 3", "beside another's": "egress: {max: 64Kbit}"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir, _ := b.makeCgroup(t, "held")
			before := b.dump(t)
			text := b.timed("{}", fmt.Sprintf("  other: {match: [{cgroup: %s/other}], %s}\n", b.cgroup, other))
			b.withoutAtomics(t, text)
			generation, queue := b.generation(t), b.queues(t)
			b.iperfServer(t, 5201)
			pid, open := b.unopened(t, dir)
			set := func(terms Terms) {
				t.Helper()
				b.lackAtomics(t)
				b.set(t, pid, terms)
			}
			left := b.wireRate("class 0")
			set(most(5e6))
			open()
			untilBusy(t, left)
			b.heldAt(t, 5, left)
			b.setIs(t, pid, "at most 5Mbit")
			sent := b.heldOf(t, pid).Passed
			set(most(10e6))
			b.heldAt(t, 10, left)
			if now := b.heldOf(t, pid); now.Passed <= sent {
				t.Errorf("a changed limit knows of %d bytes, before of %d", now.Passed, sent)
			}
			set(most(2e6))
			b.heldAt(t, 2, left)
			set(priority(5))
			b.setIs(t, pid, "priority 5, at most 2Mbit")
			left = b.wireRate("class 5")
			b.heldAt(t, 2, left)
			if now := b.generation(t); now != generation {
				t.Errorf("generation %d became %d", generation, now)
			}
			if now := b.queues(t); now != queue {
				t.Errorf("the queue is\n%s, it was\n%s", now, queue)
			}
			b.lackAtomics(t)
			b.inForce(t, text, "beside the set")

			b.apply(t, strings.ReplaceAll(text, "other:", "renamed:"))
			b.heldAt(t, 2, left)
			b.setIs(t, pid, "priority 5, at most 2Mbit")
			set(most(0))
			b.heldAt(t, 0, left)
			b.setIs(t, pid, "priority 5")
			set(most(4e6))
			b.heldAt(t, 4, left)
			b.lackAtomics(t)
			if err := b.Clear(context.Background(), pid); err != nil {
				t.Fatal(err)
			}
			b.heldAt(t, 0, b.wireRate("class 0"))
			if s, err := b.Status(context.Background()); err != nil || !s.OK || len(s.Sets) != 0 {
				t.Errorf("after it was cleared: %+v, %v", s, err)
			}
			if b.room().PaceAttached() {
				t.Error("connections are paced")
			}
			set(most(4e6))
			if err := b.Reset(context.Background()); err != nil {
				t.Fatal(err)
			}
			b.sameAs(t, before, "reset")
		})
	}
}

// queues is what tc shows of the link's, without what they count.
func (b *bench) queues(t *testing.T) string {
	t.Helper()
	return b.here.Output("tc", "qdisc", "show", "dev", b.link.Name)
}

// TestSetBelowTimes is TestSetBelowLimit of limits by departure times: a process' own and
// those of the cgroups that it is in all hold.
func TestSetBelowTimes(t *testing.T) {
	needsTimes(t)
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.withoutAtomics(t, b.timed("{}", fmt.Sprintf("  held: {match: [{cgroup: %s}], egress: {max: 8Mbit}}\n", group)))
	b.iperfServer(t, 5201)
	pid, open := b.unopened(t, dir)
	open()
	left := b.wireRate("class 0")
	untilBusy(t, left)
	b.heldAt(t, 8, left)
	for _, c := range []struct{ own, held float64 }{{2, 2}, {30, 8}, {0, 8}, {3, 3}} {
		b.lackAtomics(t)
		b.set(t, pid, most(policy.Rate(c.own*1e6)))
		b.heldAt(t, c.held, left)
	}
	b.lackAtomics(t)
	if err := b.Clear(context.Background(), pid); err != nil {
		t.Fatal(err)
	}
	b.heldAt(t, 8, left)
}

// TestSetGroupByTimes is TestSetGroupLimit by departure times.
func TestSetGroupByTimes(t *testing.T) {
	needsTimes(t)
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.withoutAtomics(t, b.timed("{}", "  other: {match: [{port: 9}], priority: 3}\n"))
	queue := b.queues(t)
	cgroup, err := policy.ParseCgroup(group)
	if err != nil {
		t.Fatal(err)
	}
	of := policy.Selector{Kind: policy.KindCgroup, Cgroup: cgroup}
	b.iperfServer(t, 5201)
	_, open := b.unopened(t, dir)
	open()
	left := b.wireRate("class 0")
	untilBusy(t, left)
	for _, limit := range []float64{5, 10, 2, 0, 4} {
		b.lackAtomics(t)
		if err := b.SetGroup(context.Background(), of, most(policy.Rate(limit*1e6))); err != nil {
			t.Fatal(err)
		}
		b.heldAt(t, limit, left)
		s := status(t, b.Agent)
		if !s.OK || (len(s.Limits) == 1 && s.Limits[0].Rung == string(policy.MethodEDT)) != (limit != 0) {
			t.Errorf("limited to %g: %+v", limit, s)
		}
	}
	b.lackAtomics(t)
	if err := b.ClearGroup(context.Background(), of); err != nil {
		t.Fatal(err)
	}
	b.heldAt(t, 0, left)
	if now := b.queues(t); now != queue {
		t.Errorf("the queue is\n%s, it was\n%s", now, queue)
	}
}

// TestSetWithoutTimes: where no link keeps times of departure, or one does not, a limit is
// refused, and nothing was changed; so is what sockets receive everywhere.
func TestSetWithoutTimes(t *testing.T) {
	needsTimes(t)
	b := newBench(t)
	workloads := "  other: {match: [{port: 9}], priority: 3}\n"
	const why = " (no atomic fetch); link %q: "
	sent, arriving := most(1e6), Terms{MaxIngress: new(policy.Rate)}
	*arriving.MaxIngress = 1e6
	for link, want := range map[string]string{
		"{scheduler: none}":               "scheduler none has no queue of Weir's, which would keep a packet until its time of departure",
		"{rate: 100Mbit, scheduler: htb}": "htb keeps no packet until its time of departure",
		"{rate: 100Mbit}":                 " is below htb here, which keeps no packet until its time of departure",
		"{}":                              "",
	} {
		b.withoutAtomics(t, b.timed(link, workloads))
		before, err := b.Basis()
		if err != nil {
			t.Fatal(err)
		}
		refuse := func(terms Terms, want ...string) {
			t.Helper()
			b.lackAtomics(t)
			cgroup, err := policy.ParseCgroup(b.cgroup + "/any")
			if err != nil {
				t.Fatal(err)
			}
			for of, err := range map[string]error{
				"process": b.Set(context.Background(), sleeper(t), terms),
				"cgroup":  b.SetGroup(context.Background(), policy.Selector{Kind: policy.KindCgroup, Cgroup: cgroup}, terms),
			} {
				if !errors.Is(err, ErrNoLimits) {
					t.Fatalf("%s: %s: %v", link, of, err)
				}
				for _, part := range want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %s: %v, want %q", link, of, err, part)
					}
				}
			}
		}
		refuse(arriving, "no atomic fetch), and nothing else holds what sockets receive")
		if want != "" {
			refuse(sent, fmt.Sprintf(why, b.link.Name), want)
		}
		if after, err := b.Basis(); err != nil || after != before {
			t.Errorf("%s: something is remembered, %v", link, err)
		}
	}
}

// TestSetByTimesWithoutRoom is TestSetLimitWithoutRoom by departure times.
func TestSetByTimesWithoutRoom(t *testing.T) {
	needsTimes(t)
	b := newBench(t)
	text := b.timed("{}", "  other: {match: [{port: 9}], priority: 3}\n")
	b.withoutAtomics(t, text)
	b.setWithoutRoom(t, plan.Limit{Max: 64e3, Departs: true})
	b.lackAtomics(t)
	b.inForce(t, text, "with room for a limit")
}

// TestSetAndAnotherRung: a policy whose link would not keep the times of what was set is
// refused as long as its process lives.
func TestSetAndAnotherRung(t *testing.T) {
	needsTimes(t)
	b := newBench(t)
	workloads := "  other: {match: [{port: 9}], priority: 3}\n"
	text, other := b.timed("{}", workloads), b.timed("{rate: 100Mbit}", workloads)
	b.withoutAtomics(t, text)
	process := exec.Command("sleep", "600")
	launch(t, b.here, "", process)
	pid := uint32(process.Process.Pid)
	b.set(t, pid, most(1e6))
	b.lackAtomics(t)
	var errs policy.Errors
	if _, err := b.tryApply(other); !errors.As(err, &errs) || !strings.Contains(err.Error(), fmt.Sprintf("gave to pid %d: no way to hold its egress limit: ", pid)) {
		t.Fatalf("got %v", err)
	}
	b.inForce(t, text, "after the refusal")
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Cancel() // which waits for its end
	b.lackAtomics(t)
	if _, err := b.tryApply(other); err != nil {
		t.Fatal(err)
	}
	if s := status(t, b.Agent); !s.OK || s.Links[0].Queue == "" {
		t.Errorf("status: %+v", s)
	}
}

// TestKilledSetGroup kills a set of a cgroup at every place: apply finishes it, and reset
// undoes it.
func TestKilledSetGroup(t *testing.T) {
	needsTimes(t)
	b := newBench(t)
	_, group := b.makeCgroup(t, "held")
	before := b.dump(t)
	text := b.timed("{scheduler: fq}", "  other: {match: [{port: 9}], priority: 3}\n")
	place := 1
	for ; ; place += stride(limitsStride) {
		b.withoutAtomics(t, text)
		if !b.suffer(t, victim{Verb: "set", Cgroup: group, KillAt: place}) {
			break
		}
		b.lackAtomics(t)
		b.passes(t)
		if s, err := b.Status(context.Background()); err != nil || s.Unfinished == nil || s.OK {
			t.Fatalf("place %d: status %+v, %v", place, s, err)
		}
		if place/stride(limitsStride)%2 == 0 {
			if _, err := b.tryApply(text); err != nil {
				t.Fatalf("place %d: apply: %v", place, err)
			}
			s := status(t, b.Agent)
			if !s.OK || len(s.Sets) != 1 || len(s.Promises) < 2 || s.Promises[0].Verdict != plan.Kept {
				t.Fatalf("place %d: not finished: %+v", place, s)
			}
		}
		if err := b.Reset(context.Background()); err != nil {
			t.Fatalf("place %d: reset: %v", place, err)
		}
		b.sameAs(t, before, fmt.Sprintf("place %d: reset", place))
	}
	if place < 8 {
		t.Errorf("only %d places to break off", place)
	}
}
