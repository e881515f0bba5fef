package lab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

// heldOpen is how many descriptors of this process are of a file.
func heldOpen(t *testing.T, path string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, err := os.Readlink(fd); err == nil && to == path {
			n++
		}
	}
	return n
}

// The bound on how long CPUs take to wake up is that of one process, and the kernel takes it
// back with the last descriptor.
func TestStayAwake(t *testing.T) {
	testutil.Needs(t, "root", "CPU latency bound")
	before := heldOpen(t, cpuLatency)
	s, err := newSession(experimentOf(t, "priority"), Options{Controller: newRawController(testutil.Cgroup2(t))})
	if err != nil {
		t.Fatal(err)
	}
	if !s.result.Environment.Awake {
		t.Error("the environment does not say it")
	}
	if n := heldOpen(t, cpuLatency); n != before+1 {
		t.Errorf("%d descriptors, %d before", n, before)
	}
	if bound, err := os.ReadFile(cpuLatency); err != nil || string(bound) != "\x00\x00\x00\x00" {
		t.Errorf("CPUs may take % x to wake up, %v", bound, err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if n := heldOpen(t, cpuLatency); n != before {
		t.Errorf("%d descriptors after the session, %d before", n, before)
	}
}
