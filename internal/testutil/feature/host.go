package feature

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func root() error {
	if os.Geteuid() != 0 {
		return errAbsent
	}
	return nil
}

func cpus(n int) probe {
	return func() error {
		if runtime.NumCPU() < n {
			return errAbsent
		}
		return nil
	}
}

func file(path string) probe {
	return func() error {
		_, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			return errAbsent
		}
		return err
	}
}

// virtualClock asks whether this is a machine of test/vm/run --clock virtual, which tells its kernel so.
func virtualClock() error {
	line, err := os.ReadFile("/proc/cmdline")
	if err == nil && !slices.Contains(strings.Fields(string(line)), "weir.clock=virtual") {
		return errAbsent
	}
	return err
}

// Cache is the directory in which the scripts of the tests keep what they fetch.
func Cache() (string, error) {
	if dir := os.Getenv("WEIR_CACHE"); dir != "" {
		return dir, nil
	}
	user, err := os.UserCacheDir()
	return filepath.Join(user, "weir"), err
}

// initialPIDs looks at the number that the kernel gives to its first pid namespace, and to no other.
func initialPIDs() error {
	const first = "pid:[4026531836]"
	if link, err := os.Readlink("/proc/self/ns/pid"); err != nil || link == first {
		return err
	}
	return errAbsent
}

func cached(path string) probe {
	return func() error {
		dir, err := Cache()
		if err != nil {
			return err
		}
		return file(filepath.Join(dir, path))()
	}
}

func tool(name string) probe {
	return func() error {
		if _, err := exec.LookPath(name); err != nil {
			return errAbsent
		}
		return nil
	}
}

// pidfd asks for pidfd_getfd (5.6), on a descriptor that this process has.
func pidfd() error {
	pid, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return absentIf(err, unix.ENOSYS)
	}
	defer unix.Close(pid)
	fd, err := unix.PidfdGetfd(pid, pid, 0)
	if err != nil {
		return absentIf(err, unix.ENOSYS)
	}
	return unix.Close(fd)
}

// overlay asks for the overlay file system without giving it layers, which one
// that is there demands.
func overlay() error {
	if root() != nil {
		return unix.EPERM
	}
	err := unix.Mount("weir-probe", "/proc/self", "overlay", 0, "")
	if err == unix.EINVAL {
		return nil
	}
	return absentIf(err, unix.ENODEV)
}

func cgroup2() error {
	mount, err := Cgroup2Mount()
	if err == nil && mount == "" {
		return errAbsent
	}
	return err
}

// Cgroup2Mount is where the v2 hierarchy is mounted, "" if nowhere.
func Cgroup2Mount() (string, error) {
	return cgroupMount("cgroup2", "")
}

// Cgroup1Mount is where the v1 hierarchy of a controller is mounted, "" if
// nowhere.
func Cgroup1Mount(controller string) (string, error) {
	return cgroupMount("cgroup", controller)
}

func cgroupMount(fstype, option string) (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Split(line, " ") // the first may be empty
		if len(f) > 3 && f[2] == fstype && (option == "" || slices.Contains(strings.Split(f[3], ","), option)) {
			return f[1], nil
		}
	}
	return "", nil
}

// cgroup1 asks whether a v1 hierarchy of the controller is mounted or can be.
// The attempt leaves nothing behind: a hierarchy without children goes away
// with its last mount.
func cgroup1(controller string) probe {
	return func() error {
		at, err := Cgroup1Mount(controller)
		if at != "" || err != nil {
			return err
		}
		if root() != nil {
			return unix.EPERM
		}
		dir, err := os.MkdirTemp("", "weir-cgroup1-")
		if err != nil {
			return err
		}
		defer os.Remove(dir)
		if err := unix.Mount("weir-probe", dir, "cgroup", 0, controller); err != nil {
			// EBUSY: the v2 hierarchy has the controller. ENOENT: boot option
			// cgroup_no_v1. EINVAL: the kernel was built without it. ENODEV: no v1.
			return absentIf(err, unix.EBUSY, unix.ENOENT, unix.EINVAL, unix.ENODEV)
		}
		return unix.Unmount(dir, 0)
	}
}

// sockCgroup asks whether sockets keep their v2 cgroup when the first process is
// moved into a group of v1's net_prio or net_cls. A kernel in which they do not
// has a switch for that.
func sockCgroup() error {
	symbols, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		return err
	}
	if !bytes.Contains(symbols, []byte(" cgroup_sk_alloc\n")) || bytes.Contains(symbols, []byte(" cgroup_sk_alloc_disable\n")) {
		return errAbsent
	}
	return nil
}

// mounted1 asks whether a v1 hierarchy of the controller is mounted, for one
// that the v2 hierarchy would lose by mounting it.
func mounted1(controller string) probe {
	return func() error {
		at, err := Cgroup1Mount(controller)
		if err == nil && at == "" {
			return errAbsent
		}
		return err
	}
}

// kmemTCP asks whether the v1 memory hierarchy that is mounted holds TCP memory.
func kmemTCP() error {
	at, err := Cgroup1Mount("memory")
	if err != nil {
		return err
	}
	if at == "" {
		return errAbsent
	}
	return file(filepath.Join(at, "memory.kmem.tcp.limit_in_bytes"))()
}

// controls2 is whether the v2 hierarchy has a controller.
func controls2(controller string) probe {
	return func() error {
		at, err := Cgroup2Mount()
		if err != nil {
			return err
		}
		all, err := os.ReadFile(filepath.Join(at, "cgroup.controllers"))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !slices.Contains(strings.Fields(string(all)), controller) {
			return errAbsent
		}
		return err
	}
}

// absentIf turns the errnos by which a kernel says "I have no such thing" into
// errAbsent and leaves every other error as it is.
func absentIf(err error, absent ...unix.Errno) error {
	for _, e := range absent {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", errAbsent, err)
		}
	}
	return err
}
