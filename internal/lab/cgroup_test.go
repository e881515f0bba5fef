package lab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
	if _, err := makeCgroup(parent, "first"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a workload twice: %v", err)
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

// TestNestedCgroups: as deep as the labs go, and all of it is removed.
func TestNestedCgroups(t *testing.T) {
	parent := testutil.Cgroup2(t)
	top, last, err := nestCgroup(parent, "deep", nesting)
	if err != nil {
		t.Fatal(err)
	}
	if want := top + strings.Repeat("/n", nesting); last != want || top != filepath.Join(parent, "deep") {
		t.Errorf("below %s the last is %s", top, last)
	}
	if _, err := os.Stat(last); err != nil {
		t.Error(err)
	}
	if _, _, err := nestCgroup(parent, "deep", 1); !errors.Is(err, fs.ErrExist) {
		t.Errorf("twice: %v", err)
	}
	for range 2 {
		if err := RemoveCgroups(top); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(top); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", top, err)
	}
	// Where there can not be so many, none is left.
	if err := os.WriteFile(filepath.Join(parent, "cgroup.max.depth"), []byte("10"), 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := nestCgroup(parent, "deep", nesting); err == nil {
		t.Error("deeper than allowed")
	}
	if _, err := os.Stat(top); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", top, err)
	}
}
