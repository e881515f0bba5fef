package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// suffer runs a change in a process of its own that is killed at a place. It
// reports whether the place was reached.
func (b *bench) suffer(t *testing.T, v victim) (killed bool) {
	t.Helper()
	v.Scope = b.Scope
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), victimEnv+"="+string(text))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == unix.SIGKILL {
		return true
	}
	t.Fatalf("%s: %v\n%s", v.Verb, err, out)
	return false
}

// passes sends a few bytes over the wire and back, as an open connection would.
func (b *bench) passes(t *testing.T) {
	t.Helper()
	var l net.Listener
	b.there.Do(func() { l = listen(t, "") })
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 64)
		n, _ := c.Read(buf)
		_, _ = c.Write(buf[:n])
	}()
	var c net.Conn
	b.here.Do(func() {
		var err error
		port := l.Addr().(*net.TCPAddr).Port
		c, err = net.DialTimeout("tcp4", fmt.Sprintf("%s:%d", b.far.IPv4.Addr(), port), 3*time.Second)
		if err != nil {
			t.Fatalf("connect over the link: %v", err)
		}
	})
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(3 * time.Second))
	want := []byte("still here")
	if _, err := c.Write(want); err != nil {
		t.Fatalf("write over the link: %v", err)
	}
	got := make([]byte, 64)
	n, err := c.Read(got)
	if err != nil || !bytes.Equal(got[:n], want) {
		t.Fatalf("echo over the link: %q, %v", got[:n], err)
	}
}

// dump is everything lasting that Weir could leave behind, in the words of others.
func (b *bench) dump(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, cmd := range [][]string{
		{"tc", "qdisc", "show", "dev", b.link.Name},
		{"tc", "class", "show", "dev", b.link.Name},
		{"tc", "filter", "show", "dev", b.link.Name, "egress"},
		{"tc", "filter", "show", "dev", b.link.Name, "ingress"},
		{"nft", "list", "ruleset"},
		{"ip", "rule", "show"},
		{"ip", "-d", "-o", "link", "show"},
		{"bpftool", "net", "show", "dev", b.link.Name},
		{"bpftool", "cgroup", "show", b.Scope.Cgroup},
	} {
		fmt.Fprintf(&text, "$ %s\n%s", strings.Join(cmd, " "), testutil.Lasting(b.said(t, cmd...)))
	}
	// A bpftool may be too old to know of tcx.
	for _, hook := range []string{"ingress", "egress"} {
		fmt.Fprintf(&text, "%d programs at the %s\n", b.programsAt(t, hook), hook)
	}
	for _, dir := range []string{b.Scope.Cgroup, filepath.Dir(b.Scope.Pins)} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && (d.IsDir() || dir != b.Scope.Cgroup) {
				fmt.Fprintln(&text, path)
			}
			return nil
		})
	}
	return text.String()
}

// said is what a witness prints, and how it ends: bpftool fails where a kernel of
// 5.10 has programs on a cgroup, which is an answer as well.
func (b *bench) said(t *testing.T, command ...string) string {
	t.Helper()
	testutil.Needs(t, command[0])
	var out []byte
	var err error
	b.here.Do(func() { out, err = exec.Command(command[0], command[1:]...).CombinedOutput() })
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s%v\n", out, err)
}

// sameAs ends the test unless what was there before is there, after what is named.
func (b *bench) sameAs(t *testing.T, before, after string) {
	t.Helper()
	if diff := cmp.Diff(before, b.dump(t)); diff != "" {
		t.Fatalf("%s left (-before +after)\n%s", after, diff)
	}
}

const goldPolicy = `  gold:
    match: [{port: 4000}, {user: root}]
    priority: 15
  iron:
    match: [{cgroup: /some/where}]
    priority: 2
`

// fewLeaves is goldPolicy on a line of two leaves a class: a place for each of eight, of which most
// places would be, tells no more.
func (b *bench) fewLeaves() string { return b.policyAt(2, goldPolicy) }

// limitsPolicy is goldPolicy with limits of every kind: the link's own in both
// directions, a workload's on all links together, its own on this one, and of what its
// sockets receive; and a weight in the link's own. It leaves the queue alone, which has most of the places of goldPolicy.
func (b *bench) limitsPolicy() string {
	return strings.NewReplacer(
		"rate: 100Mbit", "scheduler: none, egress: {max: 9Mbit}, ingress: {max: 8Mbit}",
		"priority: 15", fmt.Sprintf("priority: 15\n    egress: {max: 2Mbit, weight: 3, links: {%s: {max: 1Mbit}}}\n    ingress: {max: 3Mbit}", b.link.Name),
	).Replace(b.policyText(goldPolicy))
}

// stride is the distance of the places that are tried: every one, and in short
// runs, on machines that are a hundred times slower, some.
func stride(short int) int {
	if testing.Short() {
		return short
	}
	return 1
}

// Strides of short runs. Of the few places with limits, one is where link_ingress is
// attached and does not count yet.
const (
	longStride   = 9
	leavesStride = 3
	limitsStride = 5
)

// TestKilledApply kills an apply at every place, one after the other.
func TestKilledApply(t *testing.T) {
	t.Parallel() // nothing is measured
	testutil.Proves(t, testutil.Undo)
	b := newBench(t)
	if places := b.killApply(t, b.fewLeaves(), stride(leavesStride)); places < 20 {
		t.Errorf("only %d places to break off", places)
	}
}

// TestKilledLimit is TestKilledApply of a policy with limits.
func TestKilledLimit(t *testing.T) {
	t.Parallel() // nothing is measured
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	if places := b.killApply(t, b.limitsPolicy(), stride(limitsStride)); places < 15 {
		t.Errorf("only %d places to break off", places)
	}
}

// TestKilledLimitByHTB is TestKilledApply of limits that classes hold, on a line of one
// leaf a class: a place for each of many leaves tells no more.
func TestKilledLimitByHTB(t *testing.T) {
	t.Parallel() // nothing is measured
	testutil.Proves(t, testutil.Undo)
	testutil.Needs(t, "htb qdisc")
	b := newBench(t)
	text := strings.NewReplacer("priority: 15", "priority: 15\n    egress: {min: 100Kbit, max: 200Kbit, method: htb}",
		"priority: 2", "egress: {max: 64Kbit, method: htb}").Replace(b.policyAt(1, goldPolicy))
	if places := b.killApply(t, text, stride(longStride)); places < 20 {
		t.Errorf("only %d places to break off", places)
	}
}

// TestKilledReceive is TestKilledApply of a limit of what sockets receive, without any
// link.
func TestKilledReceive(t *testing.T) {
	t.Parallel() // nothing is measured
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	if places := b.killApply(t, receiving(b.cgroup, "8Mbit"), stride(limitsStride)); places < 10 {
		t.Errorf("only %d places to break off", places)
	}
}

// TestKilledMemory is TestKilledApply of a bound of TCP memory, without any link.
func TestKilledMemory(t *testing.T) {
	testutil.Proves(t, testutil.Undo)
	testutil.Needs(t, "sock_ops", "BTF")
	b := newBench(t)
	if places := b.killApply(t, bounded(b.cgroup, "{max: 8MiB, when-full: refuse}"), stride(limitsStride)); places < 10 {
		t.Errorf("only %d places to break off", places)
	}
}

// killApply kills an apply at places that lie a stride apart, and returns how many
// places there are.
func (b *bench) killApply(t *testing.T, text string, stride int) (places int) {
	t.Helper()
	before := b.dump(t)
	b.apply(t, text)
	if b.dump(t) == before {
		t.Fatal("the dump does not show what an apply does")
	}
	if err := b.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	place := 1
	for ; b.suffer(t, victim{Verb: "apply", Policy: text, KillAt: place}); place += stride {
		b.passes(t)
		s, err := b.Status(context.Background())
		if err != nil {
			t.Fatalf("place %d: status: %v", place, err)
		}
		if s.Unfinished == nil || s.OK || !strings.HasPrefix(s.Verdict, "unfinished: apply") {
			t.Fatalf("place %d: status says %q", place, s.Verdict)
		}
		if place/stride%2 == 0 {
			// Finish it, and see that it is whole.
			if _, err := b.tryApply(text); err != nil {
				t.Fatalf("place %d: apply: %v", place, err)
			}
			if d := b.apply(t, text); len(d) != 0 {
				t.Fatalf("place %d: not finished: %v", place, d)
			}
		}
		if err := b.Reset(context.Background()); err != nil {
			t.Fatalf("place %d: reset: %v", place, err)
		}
		b.sameAs(t, before, fmt.Sprintf("place %d: reset", place))
	}
	t.Logf("%d places", place-1)
	return place - 1
}

// TestKilledChange kills the change from one policy to another at every place: another
// rate and other workloads, and a share and a limit in a class that come and go.
func TestKilledChange(t *testing.T) {
	t.Parallel() // nothing is measured
	testutil.Proves(t, testutil.Undo)
	b := newBench(t)
	// A line of 1 Mbit/s has one leaf a class: a place for each of many leaves tells no more.
	first := strings.NewReplacer("Mbit", "Mbit, scheduler: htb", "priority: 15", "priority: 15\n    egress: {min: 10%}",
		"priority: 2", "egress: {max: 64Kbit, method: htb}").Replace(b.policyAt(1, goldPolicy))
	second := strings.Replace(b.policyText("  gold:\n    match: [{port: 4001}]\n    priority: 4\n"), "100Mbit", "900Kbit, scheduler: htb", 1)
	for place := 1; ; place += stride(longStride) {
		b.apply(t, first)
		if !b.suffer(t, victim{Verb: "apply", Policy: second, KillAt: place}) {
			break
		}
		b.passes(t)
		// Either end of the change is reached, in one go.
		for _, text := range []string{second, first} {
			if _, err := b.tryApply(text); err != nil {
				t.Fatalf("place %d: apply: %v", place, err)
			}
			if d := b.apply(t, text); len(d) != 0 {
				t.Fatalf("place %d: not finished: %v", place, d)
			}
		}
	}
}

// TestKilledLimitChange kills the change from a policy with limits to one without,
// and the one back, at every place.
func TestKilledLimitChange(t *testing.T) {
	t.Parallel() // nothing is measured
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	from := b.limitsPolicy()
	to := strings.Replace(b.policyText(goldPolicy), "rate: 100Mbit", "scheduler: none", 1)
	programs := map[string]int{from: 1, to: 0}
	b.apply(t, from)
	changes := 0
	for place, killed := 1, true; killed; place += stride(limitsStride) {
		killed = false
		for range 2 {
			if b.suffer(t, victim{Verb: "apply", Policy: to, KillAt: place}) {
				killed = true
				b.passes(t)
			}
			// The first of a place is finished, so that the second is the one back; that
			// is undone at every other place.
			if changes++; changes%4 != 0 {
				from, to = to, from
			}
			if _, err := b.tryApply(from); err != nil {
				t.Fatalf("place %d: apply: %v", place, err)
			}
			if d := b.apply(t, from); len(d) != 0 {
				t.Fatalf("place %d: not finished: %v", place, d)
			}
			if link, sockets := b.programsAt(t, "ingress"), b.receivers(t); link != programs[from] || sockets != programs[from] {
				t.Fatalf("place %d: %d programs at the ingress and %d of sockets, want %d each", place, link, sockets, programs[from])
			}
		}
	}
	t.Logf("%d changes", changes)
	if changes < 5 {
		t.Errorf("only %d changes to break off", changes)
	}
}

// TestKilledReset kills a reset at every place, with limits where there can be any.
func TestKilledReset(t *testing.T) {
	t.Parallel() // nothing is measured
	testutil.Proves(t, testutil.Undo)
	b := newBench(t)
	before := b.dump(t)
	text := b.policyText(goldPolicy)
	if b.features(context.Background()).CanLimit() {
		// The queue as well, which is few steps to take away.
		text = strings.Replace(b.limitsPolicy(), "scheduler: none", "rate: 100Mbit", 1)
	}
	for place := 1; ; place += stride(longStride) {
		b.apply(t, text)
		if !b.suffer(t, victim{Verb: "reset", KillAt: place}) {
			break
		}
		b.passes(t)
		s, err := b.Status(context.Background())
		if err != nil {
			t.Fatalf("place %d: status: %v", place, err)
		}
		if s.Unfinished == nil || !strings.HasPrefix(s.Verdict, "unfinished: reset") {
			t.Fatalf("place %d: status says %q", place, s.Verdict)
		}
		if err := b.Reset(context.Background()); err != nil {
			t.Fatalf("place %d: reset: %v", place, err)
		}
		b.sameAs(t, before, fmt.Sprintf("place %d: reset", place))
	}
	b.sameAs(t, before, "an unbroken reset")
}

// TestFailedApply lets every step of an apply fail: all is as before.
func TestFailedApply(t *testing.T) {
	t.Parallel() // nothing is measured
	testutil.Proves(t, testutil.Undo)
	b := newBench(t)
	b.failApply(t, b.fewLeaves(), stride(leavesStride))
}

// TestFailedLimit is TestFailedApply of a policy with limits.
func TestFailedLimit(t *testing.T) {
	t.Parallel() // nothing is measured
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	b.failApply(t, b.limitsPolicy(), stride(limitsStride))
}

func (b *bench) failApply(t *testing.T, text string, stride int) {
	t.Helper()
	before := b.dump(t)
	broken := errors.New("broken off")
	for place := 1; ; place += stride {
		n := 0
		b.Before = func(int, string) error {
			if n++; n == place {
				return broken
			}
			return nil
		}
		_, err := b.tryApply(text)
		if err == nil {
			break
		}
		if !errors.Is(err, broken) || !errors.Is(err, ErrRolledBack) {
			t.Fatalf("place %d: %v", place, err)
		}
		b.sameAs(t, before, fmt.Sprintf("place %d: the failure", place))
		if s, err := b.Status(context.Background()); err != nil || s.Unfinished != nil || s.Policy != "" {
			t.Fatalf("place %d: status %+v, %v", place, s, err)
		}
	}
	b.Before = nil
}

func (b *bench) tryApply(text string) (int, error) {
	p, err := policy.Parse("test.yaml", []byte(text))
	if err != nil {
		return 0, err
	}
	done, err := b.Apply(context.Background(), p, []byte(text))
	if err != nil {
		return 0, err
	}
	return len(done.Changes), nil
}
