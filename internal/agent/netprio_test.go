package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/kernel/netprio"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// netPrioGroup is the net_prio cgroup of a process, below those of the scope; ""
// is none of ours.
func (b *bench) netPrioGroup(t *testing.T, pid uint32) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); f[1] == "net_prio" {
			group, _ := strings.CutPrefix(f[2], b.tree().Base+"/")
			return strings.TrimPrefix(group, "/")
		}
	}
	return ""
}

// A process that no workload carries any more is put back where it was, while
// the others stay.
func TestNetPrioWorkloadsLeave(t *testing.T) {
	testutil.Needs(t, "net_prio")
	b := newBench(t)
	one, two := sleeper(t), sleeper(t)
	workload := func(name string, pid uint32, priority int) string {
		return fmt.Sprintf("  %s: {match: [{pid: %d}], priority: %d, via: net_prio}\n", name, pid, priority)
	}
	b.apply(t, b.policyText(workload("gold", one, 5)+workload("iron", two, 2)))
	if a, c := b.netPrioGroup(t, one), b.netPrioGroup(t, two); a != "prio-5" || c != "prio-2" {
		t.Fatalf("they are in %q and %q", a, c)
	}
	b.apply(t, b.policyText(workload("iron", two, 2)))
	if a, c := b.netPrioGroup(t, one), b.netPrioGroup(t, two); a != "" || c != "prio-2" {
		t.Errorf("then in %q and %q", a, c)
	}
	b.apply(t, b.policyText(ironPolicy))
	if c := b.netPrioGroup(t, two); c != "" {
		t.Errorf("without net_prio in %q", c)
	}
	if s, err := b.tree().Read(); err != nil || len(s.Groups) != 0 {
		t.Errorf("groups are left: %v, %v", s.Groups, err)
	}
}

// What is set by net_prio needs no policy: a change that fails leaves it as it
// was, and status tells of it either way.
func TestNetPrioSetOutlivesUndo(t *testing.T) {
	testutil.Needs(t, "net_prio")
	b := newBench(t)
	pid := sleeper(t)
	if err := b.SetNetPrio(context.Background(), pid, policy.Priority{Default: 9}); err != nil {
		t.Fatal(err)
	}
	there := func(when string) {
		t.Helper()
		s, err := b.Status(context.Background())
		if err != nil || len(s.Sets) != 1 || s.Policy != "" {
			t.Errorf("%s: status %+v, %v", when, s, err)
		}
		if group := b.netPrioGroup(t, pid); group != "prio-9" {
			t.Errorf("%s: in %q", when, group)
		}
	}
	there("after it was set")
	n := 0
	b.Before = func(int, string) error {
		if n++; n == 12 {
			return errors.New("broken off")
		}
		return nil
	}
	_, err := b.tryApply(b.policyText(ironPolicy))
	b.Before = nil
	if !errors.Is(err, ErrRolledBack) {
		t.Fatalf("got %v", err)
	}
	there("after an apply that failed")
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if group := b.netPrioGroup(t, pid); group != "" {
		t.Errorf("after a reset: in %q", group)
	}
}

// TestKilledNetPrioReset kills a reset at every place: the next one finds what
// is left in a hierarchy that no other room knows of.
func TestKilledNetPrioReset(t *testing.T) {
	testutil.Needs(t, "net_prio")
	testutil.Proves(t, testutil.Undo)
	b := newBench(t)
	pid := sleeper(t)
	for place := 1; ; place++ {
		if err := b.SetNetPrio(context.Background(), pid, policy.Priority{Default: 9}); err != nil {
			t.Fatal(err)
		}
		if !b.suffer(t, victim{Verb: "reset", KillAt: place}) {
			break
		}
		if err := b.Reset(context.Background()); err != nil {
			t.Fatalf("place %d: %v", place, err)
		}
		if s, err := b.tree().Read(); err != nil || len(s.Groups) != 0 || len(s.Want) != 0 {
			t.Fatalf("place %d: groups are left: %v, %v", place, s.Groups, err)
		}
	}
}

// The groups of a set that was forgotten, as its process has ended, go with a
// reset.
func TestNetPrioForgotten(t *testing.T) {
	testutil.Needs(t, "net_prio")
	b := newBench(t)
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err := b.SetNetPrio(context.Background(), uint32(cmd.Process.Pid), policy.Priority{Default: 9})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	b.apply(t, b.policyText(ironPolicy))
	if err := b.Set(context.Background(), sleeper(t), Terms{Priority: &policy.Priority{Default: 3}}); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Scope.Load(); err != nil || len(r.Sets) != 1 {
		t.Fatalf("sets %+v, %v", r.Sets, err)
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s, err := b.tree().Read(); err != nil || len(s.Groups) != 0 || len(s.Want) != 0 {
		t.Errorf("groups are left: %v, %v", s.Groups, err)
	}
}

// A set that the kernel refuses leaves nothing: the next apply does not ask for
// it again.
func TestNetPrioRefused(t *testing.T) {
	b := newBench(t)
	pid := sleeper(t)
	b.here.Do(func() { // not the initial namespace
		if err := b.SetNetPrio(context.Background(), pid, policy.Priority{Default: 9}); !errors.Is(err, netprio.ErrNetns) {
			t.Errorf("got %v, want ErrNetns", err)
		}
	})
	if r, err := b.Scope.Load(); err != nil || len(r.Sets) != 0 {
		t.Errorf("remembered: %v, %v", r.Sets, err)
	}
	b.here.Do(func() {
		if _, err := b.tryApply(b.policyText(ironPolicy)); err != nil {
			t.Errorf("an apply after it: %v", err)
		}
	})
}
