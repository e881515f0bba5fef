package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// sleeper is a process that does nothing until the end of the test.
func sleeper(t *testing.T) uint32 {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return uint32(cmd.Process.Pid)
}

// owner is the workload that a process is tagged for; "" is none.
func (b *bench) owner(t *testing.T, pid uint32) string {
	t.Helper()
	r, err := b.Scope.Load()
	if err != nil {
		t.Fatal(err)
	}
	tags, err := b.tags()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range r.IDs.Names {
		if tags[pid] == c.Tag() {
			return name
		}
	}
	return ""
}

// A process that a policy names joins and leaves its workload with the policy,
// though no table tells of it.
func TestProcessesJoinAndLeave(t *testing.T) {
	b := newBench(t)
	one, two := sleeper(t), sleeper(t)
	policyFor := func(pids ...uint32) string {
		text := "  gold:\n    match: [{port: 4000}"
		for _, pid := range pids {
			text += fmt.Sprintf(", {pid: %d}", pid)
		}
		return b.policyText(text + "]\n    priority: 12\n")
	}
	b.apply(t, policyFor(one))
	for _, step := range []struct {
		pids   []uint32
		want   []string
		owners [2]string
	}{
		{[]uint32{one, two}, []string{fmt.Sprintf("process %d belongs to it", two)}, [2]string{"gold", "gold"}},
		{[]uint32{two}, []string{fmt.Sprintf("process %d belongs to it no more", one)}, [2]string{"", "gold"}},
		{nil, []string{fmt.Sprintf("process %d belongs to it no more", two)}, [2]string{}},
		{[]uint32{one}, []string{fmt.Sprintf("process %d belongs to it", one)}, [2]string{"gold", ""}},
	} {
		var said []string
		for _, d := range b.apply(t, policyFor(step.pids...)) {
			if d.Op != plan.Change || d.Object != "workload gold" {
				t.Errorf("%v: %s", step.pids, d)
			}
			said = append(said, d.Detail)
		}
		if diff := cmp.Diff(step.want, said); diff != "" {
			t.Errorf("%v: %s", step.pids, diff)
		}
		if got := [2]string{b.owner(t, one), b.owner(t, two)}; got != step.owners {
			t.Errorf("%v: tagged for %q, want %q", step.pids, got, step.owners)
		}
	}
}

// What leaves takes its open sockets along.
func TestSocketsLeave(t *testing.T) {
	b := newBench(t)
	var l net.Listener
	b.here.Do(func() { l = listen(t, "") })
	defer l.Close()
	tagged := func() bool {
		t.Helper()
		x, err := b.ExplainPID(context.Background(), uint32(os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range x.Sockets {
			if s.Workload == "gold" {
				return true
			}
		}
		return false
	}
	b.apply(t, b.policyText(fmt.Sprintf("  gold: {match: [{port: 4000}, {pid: %d}], priority: 12}\n", os.Getpid())))
	if !tagged() {
		t.Fatal("the open socket is not gold's")
	}
	b.apply(t, b.policyText("  gold: {match: [{port: 4000}], priority: 12}\n"))
	if tagged() {
		t.Error("the open socket is still gold's")
	}
}

// A tag that is lost is drift: status calls the promise broken and apply mends it.
func TestLostTag(t *testing.T) {
	b := newBench(t)
	pid := sleeper(t)
	text := b.policyText(fmt.Sprintf("  gold: {match: [{pid: %d}], priority: 12}\n", pid))
	b.apply(t, text)
	s, err := b.room().Sockets()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.UntagTask(pid); err != nil {
		t.Fatal(err)
	}
	status, err := b.Status(context.Background())
	if err != nil || status.OK || len(status.Promises) != 1 || status.Promises[0].Verdict != plan.Broken {
		t.Fatalf("status %+v, %v", status, err)
	}
	if d := b.apply(t, text); len(d) != 1 {
		t.Errorf("apply mends %v", d)
	}
	if owner := b.owner(t, pid); owner != "gold" {
		t.Errorf("tagged for %q", owner)
	}
}

// What was set comes before the policy, also after another apply, and where the
// tags are gone.
func TestSetOutlivesApply(t *testing.T) {
	b := newBench(t)
	pid := sleeper(t)
	text := func(priority int) string {
		return b.policyText(fmt.Sprintf("  gold: {match: [{pid: %d}], priority: %d}\n", pid, priority))
	}
	b.apply(t, text(12))
	if err := b.Set(context.Background(), pid, Terms{Priority: &policy.Priority{Default: 3}}); err != nil {
		t.Fatal(err)
	}
	b.apply(t, text(11))
	if owner := b.owner(t, pid); owner != setName(pid) {
		t.Errorf("after an apply: tagged for %q", owner)
	}
	if err := b.room().Remove(); err != nil {
		t.Fatal(err)
	}
	b.apply(t, text(11))
	if owner := b.owner(t, pid); owner != setName(pid) {
		t.Errorf("after the pins were gone: tagged for %q", owner)
	}
	if err := b.Clear(context.Background(), pid); err != nil {
		t.Fatal(err)
	}
	if owner := b.owner(t, pid); owner != "gold" {
		t.Errorf("after it was cleared: tagged for %q", owner)
	}
	if s, err := b.Status(context.Background()); err != nil || len(s.Sets) != 0 || !s.OK {
		t.Errorf("after it was cleared: %+v, %v", s, err)
	}
}
