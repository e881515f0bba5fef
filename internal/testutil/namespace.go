package testutil

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil/thread"
)

// A Namespace is a throw-away network namespace with lo up. A descriptor keeps
// it alive until the end of the test, so nothing of it outlives the process,
// not even one that is killed.
type Namespace struct {
	t    testing.TB
	file *os.File
}

// NewNamespace makes a namespace and leaves the caller where it is.
func NewNamespace(t testing.TB) *Namespace {
	t.Helper()
	Needs(t, "root")
	n := &Namespace{t: t}
	err := thread.Run(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare network namespace: %w", err)
		}
		var err error
		if n.file, err = os.Open(threadNetns); err != nil {
			return err
		}
		return netlink.LinkSetUp(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 1}})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.file.Close() })
	return n
}

// Netns makes a namespace and moves the calling test into it until its end.
// The goroutine stays on its thread meanwhile; goroutines and subtests that it
// starts are not in the namespace: they enter by [Namespace.Do].
func Netns(t testing.TB) *Namespace {
	t.Helper()
	n := NewNamespace(t)
	n.Enter(t)
	return n
}

// Enter moves the calling test into the namespace until its end.
func (n *Namespace) Enter(t testing.TB) {
	t.Helper()
	runtime.LockOSThread()
	old, err := os.Open(threadNetns)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatalf("enter namespace: %v", err)
	}
	t.Cleanup(func() {
		defer old.Close()
		if err := unix.Setns(int(old.Fd()), unix.CLONE_NEWNET); err != nil {
			t.Errorf("leave namespace: %v", err)
			return // still locked: the runtime throws the thread away
		}
		runtime.UnlockOSThread()
	})
}

// Path names the namespace for setns and for nsenter --net=PATH, in this
// process and in others, until the end of the test.
func (n *Namespace) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd())
}

// Do runs fn inside, on a thread of its own that is thrown away afterwards.
// Goroutines that fn starts are outside. A test must not call FailNow (Fatal)
// or Skip in fn.
func (n *Namespace) Do(fn func()) {
	n.t.Helper()
	err := thread.Run(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter namespace: %w", err)
		}
		fn()
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// Output runs a command inside and returns what it printed; the test fails
// where the command does.
func (n *Namespace) Output(name string, args ...string) string {
	n.t.Helper()
	var out string
	var err error
	n.Do(func() { out, err = output(name, args...) })
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

const threadNetns = "/proc/thread-self/ns/net"
