package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// netPrio mounts the v1 hierarchy of net_prio aside. A hierarchy without
// cgroups goes away with its last mount; one that is mounted is left as it is.
func netPrio() error {
	top, err := mountAside("cgroup", "net_prio")
	if errors.Is(err, unix.EBUSY) {
		return nil // it is mounted, together with net_cls or another
	}
	if err != nil {
		// ENODEV: no cgroup v1. EINVAL, ENOENT: no such controller, or switched
		// off by cgroup_no_v1=.
		return absentOn(err, unix.ENODEV, unix.EINVAL, unix.ENOENT)
	}
	return top.Close()
}

// sockCgroup asks the kernel's type information whether a socket has a field of
// its own for its v2 cgroup. Where it shares one with v1's net_prio and net_cls,
// the first process that is moved into a group of theirs takes the v2 cgroup from
// all sockets of the host that are made from then on, until it is rebooted:
// trying would do it. The fix (8520e224f547, Linux 5.15) is in older kernels of
// distributions too.
func sockCgroup() error {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return fmt.Errorf("read BTF: %v", err) // %v: its absence is not the feature's
	}
	var data *btf.Struct
	if err := kernel.TypeByName("sock_cgroup_data", &data); err != nil {
		return fmt.Errorf("read BTF: %w", err)
	}
	return ownCgroup(data)
}

// ownCgroup looks at the layout: a pointer to the cgroup beside the other
// fields, or a union of it and them.
func ownCgroup(data *btf.Struct) error {
	for _, m := range data.Members {
		switch m.Type.(type) {
		case *btf.Pointer:
			if m.Name == "cgroup" {
				return nil
			}
		case *btf.Union:
			return fmt.Errorf("%w: sockets have one field for their v2 cgroup, net_prio and net_cls", ebpf.ErrNotSupported)
		}
	}
	return errors.New("read BTF: sock_cgroup_data has a layout that is not known")
}

// inNewCgroup runs fn with a path to a new and empty cgroup v2. The hierarchy
// is mounted for this alone and at no place, so no mount has to be known or
// left behind.
func inNewCgroup(fn func(path string) error) error {
	top, err := mountAside("cgroup2", "")
	if err != nil {
		return absentOn(err, unix.ENODEV)
	}
	defer top.Close()
	name := programName + "-" + strconv.Itoa(os.Getpid())
	// One that is there is what a probe that was killed left: it is removed below.
	if err := unix.Mkdirat(int(top.Fd()), name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make cgroup: %w", err)
	}
	err = fn(fmt.Sprintf("/proc/self/fd/%d/%s", top.Fd(), name))
	if rmErr := unix.Unlinkat(int(top.Fd()), name, unix.AT_REMOVEDIR); rmErr != nil {
		err = errors.Join(err, fmt.Errorf("remove cgroup %s: %w", name, rmErr))
	}
	return err
}

// mountAside mounts a file system without a place in the tree: it lives as
// long as the file that is returned.
func mountAside(fstype, flag string) (*os.File, error) {
	context, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open file system %s: %w", fstype, err)
	}
	defer unix.Close(context)
	if flag != "" {
		if err := unix.FsconfigSetFlag(context, flag); err != nil {
			return nil, fmt.Errorf("set %s on file system %s: %w", flag, fstype, err)
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return nil, fmt.Errorf("create file system %s: %w", fstype, err)
	}
	top, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("mount file system %s: %w", fstype, err)
	}
	return os.NewFile(uintptr(top), fstype), nil
}
