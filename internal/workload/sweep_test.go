package workload

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/testutil"
)

func TestEachSocket(t *testing.T) {
	testutil.Needs(t, "root", "pidfd")
	testutil.Netns(t)
	a, heldByA := startHolder(t)
	b, heldByB := startHolder(t)
	c, _ := startHolder(t)

	// Processes come and go meanwhile.
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_ = exec.Command("true").Run()
		}
	}()
	defer func() { stop(); <-done }()

	for range 20 {
		got := make(map[uint32][]heldSocket)
		err := EachSocket(t.Context(),
			func(p Process) bool { return p.PID == a.pid() || p.PID == b.pid() },
			func(p Process, s Socket) error {
				got[p.PID] = append(got[p.PID], asHeld(s))
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if got[c.pid()] != nil {
			t.Fatal("a process that the filter refused was looked at")
		}
		for pid, want := range map[uint32][]heldSocket{a.pid(): heldByA, b.pid(): heldByB} {
			if diff := gocmp.Diff(sortHeld(want), sortHeld(got[pid])); diff != "" {
				t.Fatalf("sockets of %d (-the owner's +ours):\n%s", pid, diff)
			}
		}
	}
}

func TestEachSocketOfAll(t *testing.T) {
	testutil.Needs(t, "root", "pidfd")
	testutil.Netns(t)
	c, held := startHolder(t)
	found := 0
	if err := EachSocket(t.Context(), nil, func(p Process, _ Socket) error {
		if p.PID == c.pid() {
			found++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if found != len(held) {
		t.Errorf("%d sockets of the holder, want %d", found, len(held))
	}
}

func TestEachSocketStops(t *testing.T) {
	testutil.Needs(t, "root", "pidfd")
	testutil.Netns(t)
	c, _ := startHolder(t)
	only := func(p Process) bool { return p.PID == c.pid() }
	enough := errors.New("enough")
	calls := 0
	err := EachSocket(t.Context(), only, func(Process, Socket) error { calls++; return enough })
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("error %v after %d calls, want the first one's", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = EachSocket(ctx, only, func(Process, Socket) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want Canceled", err)
	}
}

// The cost of a sweep over this host's processes, none of which is accepted:
// what an apply without pid, user or exe selectors would pay for nothing.
func BenchmarkEachSocketRefused(b *testing.B) {
	for b.Loop() {
		if err := EachSocket(b.Context(), func(Process) bool { return false }, nil); err != nil {
			b.Fatal(err)
		}
	}
}
