package testutil

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestCgroup2(t *testing.T) {
	Needs(t, "root", "cgroup2")
	var dir string
	t.Run("use", func(t *testing.T) {
		dir = Cgroup2(t)
		child := filepath.Join(dir, "a", "b")
		if err := os.MkdirAll(child, 0o755); err != nil {
			t.Fatal(err)
		}
		member(t, child)
	})
	if t.Failed() {
		return
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%q after its test: %v", dir, err)
	}
}

func TestCgroupWithProcess(t *testing.T) {
	dir := Cgroup2(t)
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	join(t, dir, cmd.Process.Pid)
	err := removeCgroup(dir)
	if err == nil || !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("want an error that names process %d, got %v", cmd.Process.Pid, err)
	}
}

func TestCgroup1Memory(t *testing.T) {
	dir := Cgroup1(t, "memory")
	if _, err := os.Stat(filepath.Join(dir, "memory.limit_in_bytes")); err != nil {
		t.Error(err)
	}
	member(t, dir)
}

func TestCgroup1(t *testing.T) {
	dir := Cgroup1(t, "net_prio")
	if _, err := os.Stat(filepath.Join(dir, "net_prio.ifpriomap")); err != nil {
		t.Error(err)
	}
	member(t, dir)
}

// member runs a process in the cgroup and ends it without waiting for the
// cgroup to become empty.
func member(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	join(t, dir, cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

func join(t *testing.T, dir string, pid int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
}
