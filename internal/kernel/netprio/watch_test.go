package netprio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// inMounts runs fn on a thread of its own in the mount namespace of the test.
func inMounts(t *testing.T, fn func()) {
	t.Helper()
	mounts, err := os.Open("/proc/thread-self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	entered := make(chan error)
	go func() {
		runtime.LockOSThread() // for good
		entered <- errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(int(mounts.Fd()), unix.CLONE_NEWNS), mounts.Close())
		fn()
	}()
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
}

// watch runs Watch in the mount namespace of the test, until its end.
func watch(t *testing.T, tree Tree) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, result := make(chan struct{}), make(chan error, 1)
	inMounts(t, func() { result <- tree.Watch(ctx, func() { close(ready) }) })
	select {
	case <-ready:
	case err := <-result:
		t.Fatalf("watch: %v", err)
	}
	return func() error { cancel(); return <-result }
}

func TestWatch(t *testing.T) {
	tree := newTree(t)
	backup := NamedGroup("backup")
	if err := tree.Apply(map[string]policy.Priority{backup: {Default: 4}}); err != nil {
		t.Fatal(err)
	}
	stop := watch(t, tree)
	w := newWitness(t)
	settled := func(link string) bool {
		s := read(t, tree)
		_, there := s.Groups["prio-5"].Map[link]
		return there && s.Drift() == nil
	}
	waitFor(t, func() bool { return settled(w.name) })
	a := startSender(t, w.target)
	if err := tree.Assign(a.pid(), "prio-5"); err != nil {
		t.Fatal(err)
	}
	w.expect("a link that appeared later", 5, 10, func() { a.do("send 10") })

	// A change of the groups needs no other watcher; a new name is a new link.
	renamed := fmt.Sprintf("wnr%d", os.Getpid()%100000)
	if err := tree.Apply(map[string]policy.Priority{backup: {Default: 4, PerLink: map[string]policy.Level{renamed: 11}}}); err != nil {
		t.Fatal(err)
	}
	testutil.Output(t, "ip", "link", "set", w.name+"p", "down") // before 6.2 a link that is up keeps its name
	testutil.Output(t, "ip", "link", "set", w.name+"p", "name", renamed)
	waitFor(t, func() bool { return settled(renamed) })
	if got := read(t, tree).Groups[backup].Map[renamed]; got != 11 {
		t.Errorf("renamed link has priority %d, want 11", got)
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("watch ended with %v, want Canceled", err)
	}
}

func TestWatchEndsWithTheTree(t *testing.T) {
	tree := newTree(t)
	apply(t, tree)
	stop := watch(t, tree)
	if err := tree.Remove(); err != nil {
		t.Fatal(err)
	}
	newWitness(t) // links change
	time.Sleep(10 * watchPause)
	if err := stop(); err != nil {
		t.Errorf("watch ended with %v, want nothing", err)
	}
}

// TestRefreshBesideApply: entries that Watch writes are never those of an Apply
// that is over.
func TestRefreshBesideApply(t *testing.T) {
	tree := newTree(t)
	backup := NamedGroup("backup")
	wants := []map[string]policy.Priority{{backup: {Default: 4}}, {backup: {Default: 11}}}
	apply := func(i int) {
		t.Helper()
		if err := tree.Apply(wants[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	apply(0)
	stop, result := make(chan struct{}), make(chan error, 1)
	inMounts(t, func() {
		for {
			select {
			case <-stop:
				result <- nil
				return
			default:
				if _, err := tree.refresh(); err != nil {
					result <- err
					return
				}
			}
		}
	})
	times := 100
	if testing.Short() {
		times = 20
	}
	for i := range times {
		apply(i)
		if drift := read(t, tree).Drift(); drift != nil {
			t.Errorf("apply %d: %v", i, drift)
		}
	}
	close(stop)
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func waitFor(t *testing.T, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ready(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited five seconds in vain")
		}
	}
}
