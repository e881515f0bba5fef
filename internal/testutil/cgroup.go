package testutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil/feature"
)

var cgroups atomic.Uint32

// Cgroup2 makes a cgroup below the root of the v2 hierarchy and removes it at
// the end of the test, with all cgroups below it. Processes that are still in
// it by then are an error of the test and are named.
func Cgroup2(t testing.TB) string {
	t.Helper()
	Needs(t, "root", "cgroup2")
	mount, err := feature.Cgroup2Mount()
	if err != nil {
		t.Fatal(err)
	}
	return cgroup(t, mount)
}

// Cgroup1 makes a cgroup in the v1 hierarchy of a controller ("net_prio",
// "memory"). Those that exist in v1 only are mounted for the time of the test
// where they are not; of another, such as memory, the test needs a mount.
func Cgroup1(t testing.TB, controller string) string {
	t.Helper()
	name := controller
	if name != "net_prio" && name != "net_cls" {
		name = "v1 " + name
	}
	Needs(t, "root", name)
	mount, err := feature.Cgroup1Mount(controller)
	if err != nil {
		t.Fatal(err)
	}
	if mount == "" {
		mount = t.TempDir()
		if err := unix.Mount("weir-test", mount, "cgroup", 0, controller); err != nil {
			t.Fatalf("mount cgroup v1 %s: %v", controller, err)
		}
		t.Cleanup(func() { unmount(t, mount) })
	}
	return cgroup(t, mount)
}

func cgroup(t testing.TB, mount string) string {
	t.Helper()
	dir := filepath.Join(mount, fmt.Sprintf("%s%d-%d", cgroupPrefix, os.Getpid(), cgroups.Add(1)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeCgroup(dir); err != nil {
			t.Errorf("remove cgroup: %v", err)
		}
	})
	return dir
}

const cgroupPrefix = "weir-test-"

// removeCgroup removes a cgroup and those below it, deepest first. A process
// that was just killed leaves its cgroup a moment after its parent has waited
// for it, so EBUSY is tried again for a second.
func removeCgroup(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	slices.Reverse(dirs)
	deadline := time.Now().Add(time.Second)
	for _, d := range dirs {
		err := unix.Rmdir(d)
		for err == unix.EBUSY && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
			err = unix.Rmdir(d)
		}
		if err != nil && err != unix.ENOENT {
			procs, _ := os.ReadFile(filepath.Join(d, "cgroup.procs"))
			return fmt.Errorf("%s: %w (processes: %s)", d, err, strings.Fields(string(procs)))
		}
	}
	return nil
}
