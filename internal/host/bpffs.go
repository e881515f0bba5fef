package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrBPFFSInUse is returned by [UnmountBPFFS] where pins of others would be
// lost.
var ErrBPFFSInUse = errors.New("others have pins in it")

// EnsureBPFFS mounts a BPF file system on the directory at path unless the
// path is on one already, and reports whether it did. Two callers at once could
// mount two on top of each other: hold the lock.
func EnsureBPFFS(path string) (mounted bool, err error) {
	on, err := onBPFFS(path)
	if err != nil || on {
		return false, err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RELATIME
	// 0700 is what systemd gives it.
	if err := unix.Mount("bpf", path, "bpf", flags, "mode=0700"); err != nil {
		return false, fmt.Errorf("mount BPF file system on %s: %w", path, err)
	}
	return true, nil
}

// UnmountBPFFS takes away what [EnsureBPFFS] mounted. Where path is absent or
// not a BPF file system there is nothing to do; one that still holds anything
// is left alone with [ErrBPFFSInUse].
func UnmountBPFFS(path string) error {
	on, err := onBPFFS(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || !on {
		return err
	}
	if err := emptyBPFFS(path); err != nil {
		return fmt.Errorf("unmount BPF file system from %s: %w", path, err)
	}
	// EINVAL: the path lies inside of a file system that is mounted above it.
	if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmount BPF file system from %s: %w", path, err)
	}
	return nil
}

func onBPFFS(path string) (bool, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return false, &os.PathError{Op: "read file system of", Path: path, Err: err}
	}
	return fs.Type == unix.BPF_FS_MAGIC, nil
}

// preloaded are the files that a kernel with CONFIG_BPF_PRELOAD puts into every
// BPF file system.
var preloaded = map[string]bool{"maps.debug": true, "progs.debug": true}

func emptyBPFFS(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !preloaded[e.Name()] {
			return fmt.Errorf("%s: %w", filepath.Join(path, e.Name()), ErrBPFFSInUse)
		}
	}
	return nil
}
