package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// nestCgroup makes a cgroup of one workload and so many below it, each in the one before, and
// returns the last.
func nestCgroup(parent, workload string, levels int) (top, last string, err error) {
	if top, err = makeCgroup(parent, workload); err != nil {
		return "", "", err
	}
	last = top
	for range levels {
		last += "/n" // a path has at most 4096 bytes
		if err := os.Mkdir(last, 0o755); err != nil {
			return "", "", errors.Join(fmt.Errorf("make %d cgroups below each other: %w", levels, err), RemoveCgroups(top))
		}
	}
	return top, last, nil
}

// RemoveCgroups removes a cgroup and all below it, of which no process is in any. Removing
// what is absent succeeds.
func RemoveCgroups(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("look for cgroups below %s: %w", top, err)
	}
	for _, dir := range slices.Backward(dirs) {
		if err := removeCgroup(dir); err != nil {
			return err // those above are in use, too
		}
	}
	return err
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
