package steer

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// InSysfs calls fn with a directory where sysfs is as the calling thread's network namespace
// sees it. It is mounted nowhere that others could see it, and is gone afterwards.
func InSysfs(fn func(root string) error) error {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open sysfs: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return fmt.Errorf("make sysfs: %w", err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("mount sysfs: %w", err)
	}
	defer unix.Close(mount)
	return fn(fmt.Sprintf("/proc/self/fd/%d", mount))
}
