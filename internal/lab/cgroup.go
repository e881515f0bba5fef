package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupPrefix begins the names of labs' cgroups: weir-lab-PID-WORKLOAD.
const cgroupPrefix = "weir-lab-"

// makeCgroup makes the cgroup of one workload below a v2 directory.
func makeCgroup(parent, workload string) (dir string, err error) {
	dir, err = os.MkdirTemp(parent, fmt.Sprintf("%s%d-%s-", cgroupPrefix, os.Getpid(), workload))
	if err != nil {
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

// Leftovers removes the cgroups below a directory that labs made whose process
// is dead, as kill -9 leaves them, with those inside, and returns their paths.
// Cgroups of labs that run, and those with processes inside, stay.
func Leftovers(parent string) ([]string, error) {
	dirs, err := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("find leftovers of labs: %w", err)
	}
	var removed []string
	for _, dir := range dirs {
		digits, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), cgroupPrefix), "-")
		pid, err := strconv.Atoi(digits)
		if err != nil || unix.Kill(pid, 0) == nil {
			continue
		}
		inside, err := Leftovers(dir)
		if err != nil {
			return removed, err
		}
		removed = append(removed, inside...)
		if unix.Rmdir(dir) == nil {
			removed = append(removed, dir)
		}
	}
	return removed, nil
}
