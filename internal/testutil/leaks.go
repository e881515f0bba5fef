package testutil

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/goleak"
)

// Runner is what TestMain is given (a *testing.M) and what testscript.Main
// takes.
type Runner interface{ Run() int }

// Leaks runs the suite, fails it where it leaves anything behind and exits.
// It is the whole of a TestMain:
//
//	func TestMain(m *testing.M) { testutil.Leaks(m) }
func Leaks(m Runner) {
	os.Exit(Checked(m).Run())
}

// Checked is the suite m with the leak check around it, for those who do not
// exit themselves: testscript.Main(testutil.Checked(m), …).
//
// What is compared: goroutines, file descriptors, threads left in another
// network namespace, and of the kernel's own state the mounts of namespaces,
// cgroup hierarchies and BPF file systems, cgroups with "weir" in their path, BPF
// links, and pins below /sys/fs/bpf. The kernel's state is everybody's: it is compared only
// where no other checked suite ran at the same time, as it is under go test -p 1.
func Checked(m Runner) Runner {
	return checked{m, os.Stderr, filepath.Join(os.TempDir(), "weir-test-suites"), 2 * time.Second}
}

type checked struct {
	suite  Runner
	out    io.Writer
	suites string // file in which suites count themselves

	patience time.Duration // for what goes away by itself
}

func (c checked) Run() int {
	alone, end := startSuite(c.suites)
	defer end()
	goroutines := goleak.IgnoreCurrent()
	home, _ := os.Readlink(threadNetns)
	before := held(home)
	kernelBefore := kernelState()
	code := c.suite.Run()
	if code != 0 {
		return code // a test that failed may have left anything
	}
	leaks := settle(c.patience, func() []string {
		found := added(before, held(home))
		if err := goleak.Find(goroutines); err != nil {
			found = append(found, err.Error())
		}
		if alone() {
			found = append(found, added(kernelBefore, kernelState())...)
		}
		return found
	})
	for _, l := range leaks {
		fmt.Fprintf(c.out, "leaked by the suite: %s\n", l)
	}
	if len(leaks) > 0 {
		fmt.Fprintln(c.out, "FAIL")
		return 1
	}
	return 0
}

// settle asks until nothing is left or its patience has ended: the kernel frees
// links, sockets and threads a moment after their last user is gone.
func settle(patience time.Duration, find func() []string) []string {
	deadline := time.Now().Add(patience)
	for {
		found := find()
		if len(found) == 0 || time.Now().After(deadline) {
			return found
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// added is what is in after and not in before, each as often as it is more.
func added(before, after []string) []string {
	rest := slices.Clone(before)
	var more []string
	for _, a := range after {
		if i := slices.Index(rest, a); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		} else {
			more = append(more, a)
		}
	}
	return more
}
