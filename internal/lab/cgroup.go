package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// makeCgroup makes the cgroup of one workload below a v2 directory.
func makeCgroup(parent, workload string) (dir string, err error) {
	dir = filepath.Join(parent, workload)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("make cgroup of workload %s: %w", workload, err)
	}
	return dir, nil
}

// removeCgroup removes an empty cgroup. A process that has just ended leaves
// its cgroup a moment after it was waited for.
func removeCgroup(dir string) error {
	deadline := time.Now().Add(time.Second)
	for {
		err := unix.Rmdir(dir)
		if errors.Is(err, unix.EBUSY) && time.Now().Before(deadline) {
			time.Sleep(2 * time.Millisecond)
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove cgroup %s: %w", dir, err)
		}
		return nil
	}
}

// cgroupOf returns the v2 cgroup of a process as /proc/PID/cgroup names it.
func cgroupOf(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", fmt.Errorf("read cgroup of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(path, "\n"), nil
		}
	}
	return "", fmt.Errorf("read cgroup of process %d: it is in no v2 hierarchy", pid)
}
