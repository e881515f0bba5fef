package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Hierarchies says where the cgroup hierarchies of this mount namespace are.
type Hierarchies struct {
	V2 string            // mount point of the v2 hierarchy, "" if it is not mounted
	V1 map[string]string // controller, or "name=X" for a named hierarchy -> mount point
}

// FindHierarchies reads the cgroup mounts from /proc/self/mountinfo, but for
// those that others were mounted over. On a hybrid host V2 is a directory such
// as /sys/fs/cgroup/unified.
func FindHierarchies() (Hierarchies, error) {
	mounts, err := readMountinfo("/proc/self/mountinfo")
	if err != nil {
		return Hierarchies{}, err
	}
	cgroups := slices.DeleteFunc(mounts, func(m mount) bool {
		return m.kind != "cgroup" && m.kind != "cgroup2" || hidden(m)
	})
	return hierarchies(cgroups), nil
}

// hidden reports whether the mount point's path leads elsewhere or nowhere. A
// kernel before 5.8 does not tell mounts apart.
func hidden(m mount) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, m.point, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st)
	return errors.Is(err, fs.ErrNotExist) || err == nil && st.Mask&unix.STATX_MNT_ID != 0 && st.Mnt_id != m.id
}

// Mount returns the mount point of the hierarchy that a policy names: "" for
// v2, else a v1 controller or "name=X".
func (h Hierarchies) Mount(controller string) (string, bool) {
	if controller == "" {
		return h.V2, h.V2 != ""
	}
	mount, ok := h.V1[controller]
	return mount, ok
}

// hierarchies keeps the first mount of each hierarchy that shows its root. A
// bind mount of a subtree, as containers get without a cgroup namespace, is no
// use: its paths are not those of /proc/PID/cgroup.
func hierarchies(mounts []mount) Hierarchies {
	h := Hierarchies{V1: make(map[string]string)}
	for _, m := range mounts {
		if m.root != "/" {
			continue
		}
		switch m.kind {
		case "cgroup2":
			if h.V2 == "" {
				h.V2 = m.point
			}
		case "cgroup":
			for _, option := range strings.Split(m.options, ",") {
				if _, known := h.V1[option]; !known && isController(option) {
					h.V1[option] = m.point
				}
			}
		}
	}
	return h
}

// isController tells the controllers and the name among the superblock options
// of a v1 hierarchy, as cgroup1_show_options and SELinux print them, from what
// else there is.
func isController(option string) bool {
	switch option {
	case "", "rw", "ro", "seclabel", "noprefix", "xattr", "cpuset_v2_mode", "favordynmods", "clone_children":
		return false
	}
	return strings.HasPrefix(option, "name=") || !strings.Contains(option, "=")
}

// A mount is one line of mountinfo.
type mount struct {
	id      uint64
	device  uint32 // of the superblock, in the kernel's own encoding
	root    string // the directory of the filesystem that is mounted
	point   string
	kind    string
	options string // of the superblock
}

func readMountinfo(path string) ([]mount, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	defer file.Close()
	mounts, err := parseMountinfo(file)
	if err != nil {
		return nil, fmt.Errorf("read mounts of %s: %w", path, err)
	}
	return mounts, nil
}

// parseMountinfo reads the format of proc_pid_mountinfo(5): six fields, any
// number of optional ones, a single dash, three more.
func parseMountinfo(r io.Reader) ([]mount, error) {
	var mounts []mount
	lines := bufio.NewScanner(r)
	// A line holds up to two paths and overlay's layers: longer than the
	// scanner's 64 KiB on hosts with many container layers.
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		head, tail, ok := strings.Cut(lines.Text(), " - ")
		// A source may be empty: two blanks side by side.
		front, back := strings.Split(head, " "), strings.Split(tail, " ")
		if !ok || len(front) < 6 || len(back) < 2 {
			return nil, fmt.Errorf("parse line %q: not in the form of mountinfo", lines.Text())
		}
		id, err := strconv.ParseUint(front[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("parse mount id: %w", err)
		}
		device, err := parseDevice(front[2])
		if err != nil {
			return nil, err
		}
		m := mount{id: id, device: device, root: unescape(front[3]), point: unescape(front[4]), kind: back[0]}
		if len(back) > 2 {
			m.options = back[2]
		}
		mounts = append(mounts, m)
	}
	return mounts, lines.Err()
}

// parseDevice turns "MAJOR:MINOR" into the kernel's dev_t.
func parseDevice(s string) (uint32, error) {
	majorText, minorText, _ := strings.Cut(s, ":")
	major, err := strconv.ParseUint(majorText, 10, 12)
	if err != nil {
		return 0, fmt.Errorf("parse device %q: %w", s, err)
	}
	minor, err := strconv.ParseUint(minorText, 10, 20)
	if err != nil {
		return 0, fmt.Errorf("parse device %q: %w", s, err)
	}
	return kernelDevice(uint32(major), uint32(minor)), nil
}

// kernelDevice encodes a device number as the kernel holds it in memory
// (MKDEV), which is neither of the two encodings that user space gets.
func kernelDevice(major, minor uint32) uint32 { return major<<20 | minor }

// unescape undoes the \ooo of blanks, tabs, newlines and backslashes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
