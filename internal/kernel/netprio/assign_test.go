package netprio

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// The whole effect, on real packets of real processes.
func TestPrioritiesOfPackets(t *testing.T) {
	testutil.Proves(t, testutil.NetPrio)
	tree := newTree(t)
	w, other := newWitness(t), newWitness(t)
	backup := NamedGroup("backup")
	if err := tree.Apply(map[string]policy.Priority{
		backup: {Default: 4, PerLink: map[string]policy.Level{w.name: 2}},
	}); err != nil {
		t.Fatal(err)
	}
	a, b := startSender(t, w.target), startSender(t, other.target)
	assign := func(group string) {
		t.Helper()
		for _, s := range []*sender{a, b} {
			if err := tree.Assign(s.pid(), group); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.expect("before", 0, 10, func() { a.do("send 10") })
	assign("prio-5")
	w.expect("a socket that was open", 5, 10, func() { a.do("send 10") })
	w.expect("a child", 5, 10, func() { a.do("child 10") })
	a.do("open")
	w.expect("a new socket", 5, 10, func() { a.do("send 10") })
	assign(backup)
	w.expect("its own value on one interface", 2, 10, func() { a.do("send 10") })
	other.expect("the default on another", 4, 10, func() { b.do("send 10") })
	a.do("priority 6")
	w.expect("SO_PRIORITY wins over net_prio", 6, 10, func() { a.do("send 10") })
	a.do("priority 0")
	assign("prio-15")
	w.expect("the highest", 15, 10, func() { a.do("send 10") })
	if err := tree.Clear(a.pid()); err != nil {
		t.Fatal(err)
	}
	w.expect("cleared", 0, 10, func() { a.do("send 10") })
	other.expect("the other one is not", 15, 10, func() { b.do("send 10") })
}

func TestAssignAndClear(t *testing.T) {
	testutil.Proves(t, testutil.NetPrio)
	tree := newTree(t)
	apply(t, tree)
	s := read(t, tree)
	home := fmt.Sprintf("/weir-test-%d-home", os.Getpid())
	if err := os.Mkdir(s.Mount+home, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeDir(s.Mount + home); err != nil {
			t.Error(err)
		}
	})
	a := startSender(t, "127.0.0.1:9")
	if err := movePID(s.Mount+home, a.pid()); err != nil {
		t.Fatal(err)
	}

	// From group to group, and again: the memory is of the first place.
	for _, group := range []string{"prio-3", "prio-3", "prio-12"} {
		if err := tree.Assign(a.pid(), group); err != nil {
			t.Fatal(err)
		}
		if got := groupOf(t, a.pid()); got != tree.group(group) {
			t.Fatalf("process is in %s, want %s", got, group)
		}
	}
	if s := read(t, tree); s.Moved[a.pid()] != "prio-12" || len(s.Strays) != 0 {
		t.Errorf("moved %v, strays %v", s.Moved, s.Strays)
	}

	// Another hand moves it: that is seen, and Clear leaves it there.
	if err := movePID(s.Mount, a.pid()); err != nil {
		t.Fatal(err)
	}
	if s := read(t, tree); s.Strays[a.pid()] != "/" {
		t.Errorf("strays %v, want process %d at /", s.Strays, a.pid())
	}
	if err := tree.Clear(a.pid()); err != nil {
		t.Fatal(err)
	}
	if got := groupOf(t, a.pid()); got != "/" {
		t.Errorf("process is in %s, want it left in /", got)
	}

	// A child that inherited a group goes back to where its parent was.
	if err := movePID(s.Mount+home, a.pid()); err != nil {
		t.Fatal(err)
	}
	if err := tree.Assign(a.pid(), "prio-3"); err != nil {
		t.Fatal(err)
	}
	var child uint32
	if _, err := fmt.Sscan(a.do("fork"), &child); err != nil {
		t.Fatal(err)
	}
	if got := groupOf(t, child); got != tree.group("prio-3") {
		t.Errorf("child is in %s, want prio-3", got)
	}
	for range 2 { // the second time there is nothing to do
		if err := tree.Clear(child); err != nil {
			t.Fatal(err)
		}
		if got := groupOf(t, child); got != home {
			t.Errorf("child is in %s, want %s", got, home)
		}
	}
	if err := tree.Clear(a.pid()); err != nil {
		t.Fatal(err)
	}
	if got := groupOf(t, a.pid()); got != home {
		t.Errorf("process is in %s, want %s", got, home)
	}
	if s := read(t, tree); len(s.Moved) != 0 {
		t.Errorf("still remembered: %v", s.Moved)
	}
	_ = unix.Kill(int(child), unix.SIGKILL)
	a.end()
}

func TestAssignRefuses(t *testing.T) {
	tree := newTree(t)
	self := uint32(os.Getpid())
	if err := tree.Assign(self, "prio-3"); !errors.Is(err, ErrNoGroup) {
		t.Errorf("before apply: %v, want ErrNoGroup", err)
	}
	apply(t, tree)
	if err := tree.Assign(self, NamedGroup("unknown")); !errors.Is(err, ErrNoGroup) {
		t.Errorf("unknown group: %v, want ErrNoGroup", err)
	}
	const nobody = 1 << 30 // above any pid_max
	if err := tree.Assign(nobody, "prio-3"); !errors.Is(err, ErrGone) {
		t.Errorf("no such process: %v, want ErrGone", err)
	}
	if err := tree.Clear(nobody); err != nil {
		t.Errorf("clear of a process that is gone: %v", err)
	}
}

// TestForeignProcesses: who was in a group that others had made, as by the
// published recipe, goes back to it, and stays there if nobody moved it.
func TestForeignProcesses(t *testing.T) {
	tree := newTree(t)
	apply(t, tree) // for the mount
	mount := read(t, tree).Mount
	second := Tree{Base: tree.Base + "/foreign", RunDir: t.TempDir()}
	home := second.group("prio-6")
	if err := os.MkdirAll(mount+home, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(removeDir(mount+home), removeDir(mount+second.Base)) }()
	a := startSender(t, "127.0.0.1:9")
	defer a.end()
	if err := movePID(mount+home, a.pid()); err != nil {
		t.Fatal(err)
	}
	apply(t, second)
	isHome := func(after string) {
		t.Helper()
		if got := groupOf(t, a.pid()); got != home {
			t.Errorf("after %s the process is in %s, want %s", after, got, home)
		}
	}
	if err := second.Clear(a.pid()); err != nil {
		t.Fatal(err)
	}
	isHome("clear of what was never assigned")
	for _, group := range []string{"prio-9", "prio-6"} {
		if err := second.Assign(a.pid(), group); err != nil {
			t.Fatal(err)
		}
		if err := second.Clear(a.pid()); err != nil {
			t.Fatal(err)
		}
		isHome("assign to " + group + " and clear")
	}
	for _, group := range []string{"prio-9", "prio-6"} {
		apply(t, second)
		if err := second.Assign(a.pid(), group); err != nil {
			t.Fatal(err)
		}
		if err := second.Remove(); err != nil {
			t.Fatal(err)
		}
		isHome("assign to " + group + " and remove")
	}
}
