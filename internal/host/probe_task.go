package host

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// births are the tracepoints by which the kernel side follows tasks and
// cgroups.
var births = []string{"sched_process_fork", "sched_process_exit", "cgroup_mkdir"}

// rawTracepoints attaches an empty program to each of them.
func rawTracepoints() error {
	prog, err := passing(ebpf.RawTracepoint, ebpf.AttachNone)
	if err != nil {
		return narrowed(err, features.HaveProgramType(ebpf.RawTracepoint))
	}
	defer prog.Close()
	for _, name := range births {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: prog})
		if err != nil {
			return absentOn(fmt.Errorf("attach to %s: %w", name, err), unix.ENOENT)
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// pidfdGetfd copies a descriptor out of a process: this one.
func pidfdGetfd() error {
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return absentOn(fmt.Errorf("open pidfd: %w", err), unix.ENOSYS)
	}
	defer unix.Close(self)
	fd, err := unix.PidfdGetfd(self, self, 0)
	if err != nil {
		return absentOn(fmt.Errorf("copy descriptor: %w", err), unix.ENOSYS)
	}
	return unix.Close(fd)
}

// vmlinuxBTF looks at the head of the kernel's type information. Parsing it
// takes longer than all other probes together.
func vmlinuxBTF() error {
	f, err := os.Open("/sys/kernel/btf/vmlinux")
	if err != nil {
		return absentOn(err, os.ErrNotExist)
	}
	defer f.Close()
	var magic [2]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return fmt.Errorf("read BTF: %w", err)
	}
	if magic != [2]byte{0x9f, 0xeb} && magic != [2]byte{0xeb, 0x9f} {
		return fmt.Errorf("read BTF: magic is %x", magic)
	}
	return nil
}

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
