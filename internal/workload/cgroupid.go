package workload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// fileIDKernfs is the handle type of kernfs, FILEID_KERNFS of exportfs.h.
const fileIDKernfs = 0xfe

// CgroupID returns the kernfs id of a cgroup directory, v1 or v2: the id that
// bpf_get_current_cgroup_id and sock_diag speak of.
func CgroupID(dir string) (uint64, error) {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, dir, 0)
	if err != nil {
		return 0, fmt.Errorf("read id of cgroup %s: %w", dir, err)
	}
	if handle.Type() != fileIDKernfs || handle.Size() != 8 {
		return 0, fmt.Errorf("read id of cgroup %s: not a directory of a cgroup filesystem", dir)
	}
	return binary.NativeEndian.Uint64(handle.Bytes()), nil
}

// CgroupPath returns the path below the mount point of the cgroup with an id,
// "/" for the root. It wraps fs.ErrNotExist if no such cgroup exists (any
// more). It needs CAP_DAC_READ_SEARCH.
func CgroupPath(mount string, id uint64) (string, error) {
	// Not O_PATH: open_by_handle_at wants a full descriptor of the mount.
	root, err := unix.Open(mount, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("open hierarchy %s: %w", mount, err)
	}
	defer unix.Close(root)

	handle := unix.NewFileHandle(fileIDKernfs, binary.NativeEndian.AppendUint64(nil, id))
	dir, err := unix.OpenByHandleAt(root, handle, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if errors.Is(err, unix.ESTALE) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return "", fmt.Errorf("find cgroup %d below %s: %w", id, mount, err)
	}
	defer unix.Close(dir)
	// Both through the kernel, so that a symbolic link in mount does no harm.
	top, topErr := readlinkAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", root))
	full, err := readlinkAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", dir))
	if err := errors.Join(topErr, err); err != nil {
		return "", fmt.Errorf("find cgroup %d below %s: %w", id, mount, err)
	}
	if full == top {
		return "/", nil
	}
	if strings.HasSuffix(full, " (deleted)") { // removed meanwhile, or really called so
		if again, err := CgroupID(full); err != nil || again != id {
			return "", fmt.Errorf("find cgroup %d below %s: %w", id, mount, fs.ErrNotExist)
		}
	}
	path, ok := strings.CutPrefix(full, top)
	if !ok {
		return "", fmt.Errorf("find cgroup %d below %s: it is at %s", id, mount, full)
	}
	return path, nil
}
