package netprio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	controller = "net_prio"
	cgroupRoot = "/sys/fs/cgroup"
)

// findMount returns where the hierarchy of net_prio is mounted in the mount
// namespace of the calling thread, or "": where it was known to be if that is one
// of several places.
func findMount(known string) (string, error) {
	content, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find net_prio mount: %w", err)
	}
	return parseMount(string(content), known), nil
}

// parseMount finds the mount of the whole hierarchy in a mountinfo: the known one
// or the first.
func parseMount(mountinfo, known string) (first string) {
	for line := range strings.Lines(mountinfo) {
		head, tail, _ := strings.Cut(line, " - ")
		front, back := strings.Fields(head), strings.Fields(tail)
		if len(front) < 5 || len(back) < 3 || back[0] != "cgroup" || front[3] != "/" {
			continue
		}
		if slices.Contains(strings.Split(back[2], ","), controller) {
			switch mount := mountEscapes.Replace(front[4]); {
			case mount == known:
				return known
			case first == "":
				first = mount
			}
		}
	}
	return first
}

// mountEscapes undoes what the kernel escapes in mountinfo.
var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mountHierarchy mounts net_prio at a directory.
func mountHierarchy(at string) error {
	cgroups, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil {
		return fmt.Errorf("mount net_prio: %w", err)
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	options, _ := hierarchy(string(cgroups))
	if err := unix.Mount("weir", at, "cgroup", flags, options); err != nil {
		known, readErr := os.ReadFile("/proc/cgroups")
		return fmt.Errorf("mount net_prio at %s: %w", at, errors.Join(refusal(err, string(known)), readErr))
	}
	return nil
}

// hierarchyLives reports whether there is a hierarchy of net_prio, mounted or not.
func hierarchyLives() (bool, error) {
	cgroups, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil {
		return false, fmt.Errorf("find net_prio hierarchy: %w", err)
	}
	_, exists := hierarchy(string(cgroups))
	return exists, nil
}

// hierarchy returns the mount options that name the hierarchy of net_prio, and
// whether it exists. It may do so without being mounted, and then with other
// controllers, such as net_cls: it can be mounted again with exactly the same ones
// only.
func hierarchy(procCgroup string) (options string, exists bool) {
	for line := range strings.Lines(procCgroup) {
		if fields := strings.SplitN(line, ":", 3); len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), controller) {
			return fields[1], true
		}
	}
	return controller, false
}

// refusal turns the errno of a mount into one of our errors, by what
// /proc/cgroups says of the controller.
func refusal(err error, procCgroups string) error {
	listed, enabled := false, false
	for line := range strings.Lines(procCgroups) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] == controller {
			listed, enabled = true, fields[3] == "1"
		}
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return err
	case !listed || errors.Is(err, unix.ENODEV):
		return ErrNoController
	case !enabled || errors.Is(err, unix.EINVAL):
		return ErrDisabled // cgroup_no_v1= leaves it "enabled", for v2
	case errors.Is(err, unix.EBUSY):
		return ErrBusy
	}
	return err
}

// mountPoint makes a directory for the hierarchy: beside the others where
// /sys/fs/cgroup is the usual tmpfs, else below the run directory, as on hosts
// with v2 alone.
func (t Tree) mountPoint() (dir string, made bool, err error) {
	var st unix.Statfs_t
	if unix.Statfs(cgroupRoot, &st) == nil && st.Type == unix.TMPFS_MAGIC {
		dir = filepath.Join(cgroupRoot, controller)
		if err := os.Mkdir(dir, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
			return dir, err == nil, nil
		}
	}
	dir = filepath.Join(t.RunDir, controller)
	if err := os.MkdirAll(t.RunDir, 0o755); err != nil {
		return "", false, fmt.Errorf("make mount point: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", false, fmt.Errorf("make mount point: %w", err)
	} else if err != nil {
		return dir, false, nil
	}
	return dir, true, nil
}

// initialOnly is a setting that is shown in the initial network namespace and
// in no other: it is of the host, not of a namespace. Process 1 would be no
// measure: it may be out of sight, or that of a container.
const initialOnly = "/proc/sys/net/core/dev_weight"

// checkNetns returns ErrNetns unless the calling thread is in the initial
// network namespace.
func checkNetns() error {
	_, err := os.Stat(initialOnly)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNetns
	}
	if err != nil {
		return fmt.Errorf("check network namespace: %w", err)
	}
	return nil
}
