package host

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// births are the tracepoints by which the kernel side follows tasks and
// cgroups.
var births = []string{"sched_process_fork", "sched_process_exit", "cgroup_mkdir", "cgroup_rmdir"}

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

// pidfdGetfd asks another process, the parent, for a descriptor that none has:
// EBADF says that one could have been copied. Who may not look is told so first,
// as Yama tells even root where kernel.yama.ptrace_scope is 3.
func pidfdGetfd() error {
	pid := os.Getppid()
	if pid == 0 { // it is in another pid namespace
		pid = os.Getpid()
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return absentOn(fmt.Errorf("open pidfd: %w", err), unix.ENOSYS)
	}
	defer unix.Close(process)
	fd, err := unix.PidfdGetfd(process, math.MaxInt32, 0)
	if err == nil {
		return unix.Close(fd)
	}
	if errors.Is(err, unix.EBADF) {
		return nil
	}
	return absentOn(fmt.Errorf("copy descriptor of process %d: %w", pid, err), unix.ENOSYS)
}

// vmlinuxBTF looks at the head of the kernel's type information.
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
