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

// watch runs Watch in the mount namespace of the test, until its end.
func watch(t *testing.T, tree Tree) (stop func() error) {
	t.Helper()
	mounts, err := os.Open("/proc/thread-self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, result := make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good
		err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(int(mounts.Fd()), unix.CLONE_NEWNS), mounts.Close())
		if err == nil {
			err = tree.Watch(ctx, func() { close(ready) })
		}
		result <- err
	}()
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

func waitFor(t *testing.T, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ready(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited five seconds in vain")
		}
	}
}
