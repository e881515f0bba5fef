package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// most is the terms of a limit alone, in bit/s.
func most(max policy.Rate) Terms { return Terms{Max: &max} }

// priority is the terms of a priority alone.
func priority(level policy.Level) Terms {
	return Terms{Priority: &policy.Priority{Default: level}}
}

func (b *bench) set(t *testing.T, pid uint32, terms Terms) {
	t.Helper()
	if err := b.Set(context.Background(), pid, terms); err != nil {
		t.Fatal(err)
	}
}

// unopened starts a process in a cgroup that opens a stream as soon as it is told to.
func (b *bench) unopened(t *testing.T, cgroup string) (pid uint32, open func()) {
	t.Helper()
	told := filepath.Join(t.TempDir(), "told")
	cmd := start(t, b.here, cgroup, nil, "sh", "-c", fmt.Sprintf("until [ -e %s ]; do sleep 0.05; done; exec iperf3 --client %s --port 5201 --time 120",
		told, b.far.IPv4.Addr()))
	return uint32(cmd.Process.Pid), func() {
		t.Helper()
		if err := os.WriteFile(told, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) generation(t *testing.T) uint32 {
	t.Helper()
	r, err := b.Scope.Load()
	if err != nil {
		t.Fatal(err)
	}
	return r.Generation
}

// upTo says that a stream is paced, and so that its share of a limit is all of it
// or little less.
func upTo(limit float64) func(pace float64) bool {
	return func(pace float64) bool { return pace > limit*0.8 && pace <= limit }
}

func unpaced(pace float64) bool { return pace == 0 }

// TestSetLimit gives a process a limit beside a policy with and without one,
// changes it, and takes it back, all in one generation of the programs.
func TestSetLimit(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	for name, other := range map[string]string{"the only limit": "priority: 3", "beside another's": "egress: {max: 64Kbit}"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			dir, _ := b.makeCgroup(t, "held")
			text := strings.ReplaceAll(b.limited(b.cgroup+"/other", ""), "egress: {max: }", other)
			b.apply(t, text)
			before := b.generation(t)
			b.iperfServer(t, 5201)
			pid, open := b.unopened(t, dir)
			b.set(t, pid, most(40e6))
			open()
			b.untilPaced(t, upTo(40e6))
			if rate := b.rate(t, 2*time.Second); rate > 40*1.02 || rate < 40/2 {
				t.Errorf("%.2f Mbit/s left below a limit of 40", rate)
			}
			b.setIs(t, pid, "at most 40Mbit")

			sent := b.heldOf(t, pid).Passed
			b.set(t, pid, most(80e6))
			b.untilPaced(t, upTo(80e6))
			if now := b.heldOf(t, pid); now.Passed < sent {
				t.Errorf("a changed limit knows of %d bytes, before of %d", now.Passed, sent)
			}
			b.set(t, pid, most(10e6))
			b.untilPaced(t, upTo(10e6))
			if rate := b.rate(t, 2*time.Second); rate > 10*1.02 || rate < 10/2 {
				t.Errorf("%.2f Mbit/s left below a limit of 10", rate)
			}
			b.set(t, pid, priority(5))
			b.setIs(t, pid, "priority 5, at most 10Mbit")
			if after := b.generation(t); after != before {
				t.Errorf("generation %d became %d", before, after)
			}
			b.inForce(t, text, "beside the sets")

			b.apply(t, strings.ReplaceAll(text, "held", "renamed"))
			b.untilPaced(t, upTo(10e6))
			b.setIs(t, pid, "priority 5, at most 10Mbit")
			b.set(t, pid, most(0))
			b.untilPaced(t, unpaced)
			b.setIs(t, pid, "priority 5")
			b.set(t, pid, most(10e6))
			b.untilPaced(t, upTo(10e6))
			if err := b.Clear(context.Background(), pid); err != nil {
				t.Fatal(err)
			}
			b.untilPaced(t, unpaced)
			if attached := b.room().PaceAttached(); attached != (name != "the only limit") {
				t.Errorf("pace is attached: %v", attached)
			}
			if s, err := b.Status(context.Background()); err != nil || !s.OK || len(s.Sets) != 0 {
				t.Errorf("after it was cleared: %+v, %v", s, err)
			}
		})
	}
}

// setIs looks at what status tells of a process that was set, and that it is kept.
func (b *bench) setIs(t *testing.T, pid uint32, terms string) {
	t.Helper()
	s, err := b.Status(context.Background())
	if err != nil || !s.OK || len(s.Sets) != 1 || s.Sets[0].Terms != terms {
		t.Fatalf("want a set of %s, status is %+v, %v", terms, s, err)
	}
	var promised []string
	for _, j := range s.Promises {
		if j.Workload == setName(pid) {
			promised = append(promised, j.Terms())
		}
	}
	if got := strings.Join(promised, ", "); got != terms {
		t.Errorf("judged is %q, want %q", got, terms)
	}
}

// heldOf is what became of the packets of a process that was set.
func (b *bench) heldOf(t *testing.T, pid uint32) plan.Held {
	t.Helper()
	r, err := b.Scope.Load()
	if err != nil {
		t.Fatal(err)
	}
	held, err := b.held(r)
	if err != nil {
		t.Fatal(err)
	}
	h, known := held[plan.Owner{Contract: r.IDs.Names[setName(pid)].ID}]
	if !known {
		t.Fatalf("no limit of process %d among %v", pid, held)
	}
	return h
}

// What is given to a process stands in place of its workload's contract, but the
// limits of the cgroups that it is in hold beside its own. Running connections go
// from one to the other and back.
func TestSetBelowLimit(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.apply(t, b.limited(group, "10Mbit"))
	b.iperfServer(t, 5201)
	b.iperfServer(t, 5202)
	pid, open := b.unopened(t, dir)
	open()
	b.untilPaced(t, upTo(10e6))
	neighbour := start(t, b.here, dir, nil, "iperf3", "--client", b.far.IPv4.Addr().String(), "--port", "5202", "--time", "60")
	b.untilPaced(t, upTo(5e6))
	b.set(t, pid, most(1e6))
	b.untilPaced(t, upTo(1e6))
	b.set(t, pid, priority(3))
	b.set(t, pid, most(0))
	b.untilPaced(t, upTo(5e6))
	b.set(t, pid, most(30e6))
	b.untilPaced(t, upTo(5e6))
	_ = neighbour.Process.Kill()
	if err := b.Clear(context.Background(), pid); err != nil {
		t.Fatal(err)
	}
	b.untilPaced(t, upTo(10e6))
}

func TestSetGroupLimit(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	b.apply(t, strings.ReplaceAll(b.limited(b.cgroup+"/other", ""), "egress: {max: }", "priority: 3"))
	cgroup, err := policy.ParseCgroup(group)
	if err != nil {
		t.Fatal(err)
	}
	of := policy.Selector{Kind: policy.KindCgroup, Cgroup: cgroup}
	set := func(terms Terms, want string) {
		t.Helper()
		if err := b.SetGroup(context.Background(), of, terms); err != nil {
			t.Fatal(err)
		}
		s, err := b.Status(context.Background())
		if err != nil || !s.OK {
			t.Fatalf("status %+v, %v", s, err)
		}
		got := ""
		for _, set := range s.Sets {
			got += set.Terms
		}
		if got != want {
			t.Errorf("set is %q, want %q", got, want)
		}
	}
	set(most(0), "")
	set(priority(4), "priority 4")
	set(most(20e6), "priority 4, at most 20Mbit")
	b.iperfServer(t, 5201)
	_, open := b.unopened(t, dir)
	open()
	b.untilPaced(t, upTo(20e6))
	set(most(40e6), "priority 4, at most 40Mbit")
	b.untilPaced(t, upTo(40e6))
	set(most(0), "priority 4")
	b.untilPaced(t, unpaced)
	set(most(20e6), "priority 4, at most 20Mbit")
	b.untilPaced(t, upTo(20e6))
	if err := b.ClearGroup(context.Background(), of); err != nil {
		t.Fatal(err)
	}
	b.untilPaced(t, unpaced)
}

// Terms that leave nothing are no contract, and take the one before away.
func TestSetNothing(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	b.apply(t, b.policyText(ironPolicy))
	pid := sleeper(t)
	none := func() {
		t.Helper()
		b.set(t, pid, most(0))
		if r, err := b.Scope.Load(); err != nil || len(r.Sets) != 0 {
			t.Errorf("sets %+v, %v", r.Sets, err)
		}
		if tags, err := b.tags(); err != nil || len(tags) != 0 {
			t.Errorf("tags %v, %v", tags, err)
		}
	}
	none()
	b.set(t, pid, most(1e6))
	none()
	b.inForce(t, b.policyText(ironPolicy), "after it was taken away")
}

// A limit for which there is no room leaves nothing, or what was set before.
func TestSetLimitWithoutRoom(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	b.apply(t, b.policyText(ironPolicy))
	b.setWithoutRoom(t, plan.Limit{Max: 64e3})
	b.inForce(t, b.policyText(ironPolicy), "with room for a limit")
}

// setWithoutRoom sets processes where there is no room for such a limit, and then where
// there is.
func (b *bench) setWithoutRoom(t *testing.T, filling plan.Limit) {
	t.Helper()
	g, err := b.room().Open(b.generation(t))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	const strangers = 500 // contracts that nobody has
	n := plan.ContractID(0)
	for err == nil {
		n++
		err = g.SetLimit(strangers+n, filling)
	}
	if !errors.Is(err, bpf.ErrFull) {
		t.Fatal(err)
	}
	basis := func() string {
		t.Helper()
		basis, err := b.Basis()
		if err != nil {
			t.Fatal(err)
		}
		return basis
	}
	refused := func(pid uint32) {
		t.Helper()
		before := basis()
		if err := b.Set(context.Background(), pid, most(1e6)); !errors.Is(err, bpf.ErrFull) {
			t.Fatalf("got %v", err)
		}
		if basis() != before {
			t.Error("something is remembered")
		}
	}
	first, second := sleeper(t), sleeper(t)
	b.set(t, first, priority(3))
	refused(first)
	refused(second)
	if owner := b.owner(t, second); owner != "" {
		t.Errorf("it is tagged for %q", owner)
	}
	for i := range n {
		if err := g.RemoveLimit(strangers + i); err != nil {
			t.Fatal(err)
		}
	}
	b.set(t, first, most(1e6))
}

// Where the kernel can hold no limit, the error says what it lacks, and nothing
// was changed.
func TestSetLimitWithoutFeature(t *testing.T) {
	b := newBench(t)
	b.apply(t, b.policyText(ironPolicy))
	before, err := b.Basis()
	if err != nil {
		t.Fatal(err)
	}
	features := b.features(context.Background())
	cgroup, err := policy.ParseCgroup(b.cgroup + "/any")
	if err != nil {
		t.Fatal(err)
	}
	for lack, hide := range map[string]func(*plan.Features){
		"no atomic fetch":    func(f *plan.Features) { f.Atomics = false },
		"no tail calls":      func(f *plan.Features) { f.TailCalls = false },
		"no cgroup sock_ops": func(f *plan.Features) { f.SockOps = false },
	} {
		f := features
		f.Atomics, f.TailCalls, f.SockOps = true, true, true
		hide(&f)
		text, err := json.Marshal(probed{bootID(), loadedModules(), b.Version, f})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.Scope.Run, "features.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		arriving := policy.Rate(1e6)
		for what, err := range map[string]error{
			"process":   b.Set(context.Background(), sleeper(t), most(1e6)),
			"its input": b.Set(context.Background(), sleeper(t), Terms{MaxIngress: &arriving}),
			"cgroup":    b.SetGroup(context.Background(), policy.Selector{Kind: policy.KindCgroup, Cgroup: cgroup}, most(1e6)),
		} {
			if !errors.Is(err, ErrNoLimits) || !strings.Contains(err.Error(), lack) {
				t.Errorf("%s: %v, want one that says %q", what, err, lack)
			}
		}
		if after, err := b.Basis(); err != nil || after != before {
			t.Errorf("something is remembered, %v", err)
		}
	}
}
