package agent

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// hasWaiting reports whether the devices are there where answers wait in a class.
func (b *bench) hasWaiting(t *testing.T) (there bool) {
	t.Helper()
	b.here.Do(func() {
		at, back, err := tc.FindWaiting()
		if err != nil {
			t.Error(err)
		}
		there = at != 0 || back != 0
	})
	return there
}

// TestSetByClass gives a running download a limit beside a policy none of whose links keeps times: its answers wait in a class,
// which comes with the limit, changes with it, and goes with it.
func TestSetByClass(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "htb qdisc")
	for _, name := range []string{"process", "cgroup"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			b := newBench(t)
			text := b.timed("{scheduler: none}", "  other: {match: [{port: 9}], priority: 3}\n")
			b.apply(t, text)
			give, takeBack := b.downloading(t, name, "60M")
			do := func(terms Terms) {
				t.Helper()
				if err := give(terms); err != nil {
					t.Fatal(err)
				}
			}
			held := func(mbit float64, terms, evidence string) {
				t.Helper()
				least, most, rate := 0.99*segmentWire/cutWire(66), 1.01, 0.0
				if !strings.Contains(evidence, "htb") {
					least, most = 0.9, 1.02+collected(3)
				}
				good := func() bool { return rate >= least*mbit && rate <= most*mbit }
				for try := 0; try < 4 && !good(); try++ { // a busy machine's sender may have less
					time.Sleep(2 * time.Second) // for what a full bucket lets through
					rate = b.downloaded(t, 3*time.Second) * segmentWire
					t.Logf("%s: %.3f Mbit/s", terms, rate)
				}
				if !good() {
					t.Errorf("%s: %.3f of %g Mbit/s", terms, rate, mbit)
				}
				s := status(t, b.Agent)
				if !s.OK || len(s.Sets) != 1 || s.Sets[0].Terms != terms {
					t.Errorf("want a set of %s, status is %+v", terms, s)
				}
				if got := b.judgedIngress(t); !strings.HasPrefix(got, "read back: "+evidence) {
					t.Errorf("judged by %q, want %q", got, evidence)
				}
				if d := b.apply(t, text); len(d) != 0 {
					t.Errorf("applied again: %v", d)
				}
			}
			ten, twenty := policy.Rate(10e6), policy.Rate(20e6)
			do(Terms{MaxIngress: &ten})
			held(10, "ingress at most 10Mbit", "at most 10Mbit by htb")
			do(Terms{MaxIngress: &twenty, ByIngress: policy.MethodHTB})
			held(20, "ingress at most 20Mbit by htb", "at most 20Mbit by htb")
			do(Terms{Priority: &policy.Priority{Default: 5}})
			held(20, "priority 5, ingress at most 20Mbit by htb", "at most 20Mbit by htb")
			do(Terms{MaxIngress: &ten, ByIngress: policy.MethodPace})
			if b.hasWaiting(t) {
				t.Error("by pace, and the devices are there")
			}
			held(10, "priority 5, ingress at most 10Mbit", "at most 10Mbit;")
			do(Terms{MaxIngress: &ten})
			if !b.hasWaiting(t) {
				t.Error("no devices")
			}
			if err := takeBack(); err != nil {
				t.Fatal(err)
			}
			if s := status(t, b.Agent); !s.OK || len(s.Sets) != 0 || b.hasWaiting(t) {
				t.Errorf("taken back: devices %v, %+v", b.hasWaiting(t), s)
			}
			if rate := b.downloaded(t, 3*time.Second); rate < 30 {
				t.Errorf("taken back, and %.1f of 60 Mbit/s", rate)
			}
		})
	}
}

// TestSetClassEnds: the class of a process that has ended goes with the next weir set, and a set that can not wait as it says is
// refused, with nothing changed.
func TestSetClassEnds(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "htb qdisc")
	b := newBench(t)
	dir, _ := b.makeCgroup(t, "held")
	text := b.timed("{scheduler: none}", "  other: {match: [{port: 9}], priority: 3}\n")
	b.apply(t, text)
	ten := policy.Rate(10e6)
	sleeper := func() *exec.Cmd { return start(t, b.here, dir, nil, "sh", "-c", "exec sleep 60") }
	first, second := sleeper(), sleeper()
	set := func(cmd *exec.Cmd, terms Terms) error { return b.Set(t.Context(), uint32(cmd.Process.Pid), terms) }
	for _, cmd := range []*exec.Cmd{first, second} {
		if err := set(cmd, Terms{MaxIngress: &ten}); err != nil {
			t.Fatal(err)
		}
	}
	classes := func() int { return len(record(t, b.Agent).IDs.Shares[plan.WaitingRoom]) }
	if n := classes(); n != 2 {
		t.Errorf("%d classes, want 2", n)
	}
	_ = first.Process.Kill()
	_ = first.Cancel()
	if s := status(t, b.Agent); !s.OK || len(s.Sets) != 1 {
		t.Errorf("one has ended: %+v", s)
	}
	third := sleeper()
	if err := set(third, Terms{Priority: &policy.Priority{Default: 5}}); err != nil {
		t.Fatal(err)
	}
	if s := status(t, b.Agent); !s.OK || len(s.Sets) != 2 || classes() != 1 {
		t.Errorf("one has ended, and another was set: %d classes, %+v", classes(), s)
	}
	b.apply(t, "version: 1\nworkloads:\n  other: {match: [{port: 9}], ingress: {max: 1Mbit}}\n")
	if b.hasWaiting(t) {
		t.Error("without links, and the devices are there")
	}
	err := set(third, Terms{MaxIngress: &ten, ByIngress: policy.MethodHTB})
	if !errors.Is(err, ErrNoTimes) || !strings.Contains(err.Error(), "no link is declared") {
		t.Errorf("without links: %v", err)
	}
	if s := status(t, b.Agent); !s.OK || len(s.Sets) != 2 {
		t.Errorf("after the refusal: %+v", s)
	}
}
