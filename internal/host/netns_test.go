package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// A goroutine that ends locked to the main thread leaves it where it was: the
// runtime cannot end that one. testutil's namespaces are made by such ones.
func init() { runtime.LockOSThread() }

func TestInNetnsRunsInside(t *testing.T) {
	ns := testutil.NewNamespace(t)
	outside := current(t)

	var inside string
	err := InNetns(ns.Path(), func() error {
		inside = current(t)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// readlink, started inside, is the witness.
	if want := strings.TrimSpace(ns.Output("readlink", "/proc/self/ns/net")); inside != want {
		t.Errorf("inside: %s, want %s", inside, want)
	}
	if got := current(t); got != outside {
		t.Errorf("afterwards: %s, want %s", got, outside)
	}
}

func TestInNetnsStaysOnEmptyPath(t *testing.T) {
	testutil.Netns(t)
	want := current(t)
	err := InNetns("", func() error {
		if got := current(t); got != want {
			t.Errorf("inside: %s, want the caller's %s", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestInNetnsNests(t *testing.T) {
	a, b := testutil.NewNamespace(t), testutil.NewNamespace(t)
	var before, within, after string
	err := InNetns(a.Path(), func() error {
		before = current(t)
		err := InNetns(b.Path(), func() error {
			within = current(t)
			return nil
		})
		after = current(t)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if before == within || before != after {
		t.Errorf("before %s, within %s, after %s", before, within, after)
	}
}

func TestInNetnsReturnsTheError(t *testing.T) {
	ns := testutil.NewNamespace(t)
	want := errors.New("from inside")
	if err := InNetns(ns.Path(), func() error { return want }); err != want {
		t.Errorf("got %v", err)
	}
}

func TestInNetnsRefuses(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"/no/such/netns": fs.ErrNotExist, plain: unix.EINVAL} {
		err := InNetns(path, func() error {
			t.Errorf("%s: ran", path)
			return nil
		})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// Threads go back to the runtime's pool: one that kept its namespace would
// show here.
func TestInNetnsLeavesNoThreadInside(t *testing.T) {
	ns := testutil.NewNamespace(t)
	var inside string
	for range 50 {
		if err := InNetns(ns.Path(), func() (err error) { inside, err = os.Readlink(threadNetns); return err }); err != nil {
			t.Fatal(err)
		}
	}
	// The namespace's maker may still be on its way out.
	if !eventually(func() bool { return threadsIn(t, inside) == 0 }) {
		t.Errorf("%d threads are still in %s", threadsIn(t, inside), inside)
	}
}

func threadsIn(t *testing.T, netns string) int {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, task := range tasks {
		if link, err := os.Readlink(task); err == nil && link == netns {
			count++
		}
	}
	return count
}

func TestInNetnsEndsWithTheCaller(t *testing.T) {
	ns := testutil.NewNamespace(t)
	done, after := make(chan struct{}), false
	go func() {
		defer close(done)
		_ = InNetns(ns.Path(), func() error {
			runtime.Goexit()
			return nil
		})
		after = true
	}()
	<-done
	if after {
		t.Error("InNetns returned although fn had ended the goroutine")
	}
}

// current names the namespace of the calling thread.
func current(t *testing.T) string {
	t.Helper()
	netns, err := os.Readlink(threadNetns)
	if err != nil {
		t.Fatal(err)
	}
	return netns
}
