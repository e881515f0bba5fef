package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Steer has one CPU handle what arrives at the device, as a card does with one queue whose
// interrupt is bound to it: RPS hands packets over to it in batches.
func (p Plug) Steer(cpu int) error {
	err := p.Host.do(func() error {
		return inSysfs(func(root string) error {
			queues, err := filepath.Glob(filepath.Join(root, "class/net", p.Device, "queues/rx-*/rps_cpus"))
			if err == nil && len(queues) == 0 {
				err = Lacking("steering of packets to CPUs (RPS)")
			}
			for _, queue := range queues {
				err = errors.Join(err, os.WriteFile(queue, []byte(cpuMask(cpu)), 0o644))
			}
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("steer packets of %s: %w", p, err)
	}
	return nil
}

// cpuMask is one CPU as the kernel writes sets of them: hexadecimal, 32 a group.
func cpuMask(cpu int) string {
	return fmt.Sprintf("%x", 1<<(cpu%32)) + strings.Repeat(",00000000", cpu/32)
}

// inSysfs calls fn with a directory where sysfs is as the calling thread's network namespace sees
// it. It is mounted nowhere that others could see it, and is gone afterwards.
func inSysfs(fn func(root string) error) error {
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
