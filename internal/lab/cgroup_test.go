package lab

import (
	"errors"
	"io/fs"
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
