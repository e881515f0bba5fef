package lab

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/testutil"
)

func TestCgroupOf(t *testing.T) {
	parent := testutil.Cgroup2(t)
	dir, err := makeCgroup(parent, "first")
	if err != nil {
		t.Fatal(err)
	}
	w, err := traffic.StartWorker("", dir)
	if err != nil {
		t.Fatal(err)
	}
	path, err := cgroupOf(w.PID())
	if err != nil || !strings.HasSuffix(dir, path) || !strings.HasPrefix(path, "/") {
		t.Errorf("the process in %s is in %q, %v", dir, path, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	for range 2 { // removing what is absent succeeds
		if err := removeCgroup(dir); err != nil {
			t.Error(err)
		}
	}
	if _, err := cgroupOf(w.PID()); err == nil {
		t.Error("a dead process has a cgroup")
	}
}

func TestLeftovers(t *testing.T) {
	parent := testutil.Cgroup2(t)
	// A process that has ended gives a pid that nobody has.
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead := fmt.Sprintf("%s%d", cgroupPrefix, gone.Process.Pid)
	paths := map[string]bool{ // whether it is to be removed
		dead:                            true,
		dead + "/" + dead + "-first-12": true,
		dead + "-second-34":             true,
		cgroupPrefix + "notes":          false,
		"other-" + dead:                 false,
		cgroupPrefix + pid() + "-alive": false,
		cgroupPrefix + pid() + "-alive/" + dead + "-x": false,
	}
	var want []string
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		if err := os.MkdirAll(filepath.Join(parent, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if paths[name] {
			want = append(want, filepath.Join(parent, name))
		}
	}
	got, err := Leftovers(parent)
	slices.Sort(got)
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("removed %q, %v; want %q", got, err, want)
	}
	for name, removed := range paths {
		if _, err := os.Stat(filepath.Join(parent, name)); removed == (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func pid() string { return fmt.Sprint(os.Getpid()) }
