package host

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// atomics loads a program that fetches and compare-exchanges a word of its
// stack, as CPUs do that charge one budget together.
func atomics() error {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: programName, Type: ebpf.SchedCLS, License: "Apache-2.0",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R1, 1),
			asm.StoreMem(asm.R10, -8, asm.R1, asm.DWord),
			asm.FetchAdd.Mem(asm.R10, asm.R1, asm.DWord, -8),
			asm.Mov.Imm(asm.R0, 2), // what is expected there
			asm.CmpXchg.Mem(asm.R10, asm.R1, asm.DWord, -8),
			asm.Mov.Imm(asm.R0, 1),
			asm.Return(),
		},
	})
	if err != nil {
		// EINVAL: the verifier knows no such instruction. ENOTSUPP, which has no
		// name in user space: the machine's JIT does not, and nobody interprets it.
		return absentOn(fmt.Errorf("load atomics: %w", err), unix.EINVAL, unix.Errno(524))
	}
	return prog.Close()
}

// sockOps attaches a sock_ops program to an empty cgroup, where the kernel has
// what paces a connection by it.
func sockOps() error {
	for _, helper := range []asm.BuiltinFunc{asm.FnSetsockopt, asm.FnSockOpsCbFlagsSet, asm.FnSkStorageGet} {
		if err := features.HaveProgramHelper(ebpf.SockOps, helper); err != nil {
			return err
		}
	}
	prog, err := passing(ebpf.SockOps, ebpf.AttachCGroupSockOps)
	if err != nil {
		return err
	}
	defer prog.Close()
	return inNewCgroup(func(path string) error {
		l, err := link.AttachCgroup(link.CgroupOptions{Path: path, Attach: ebpf.AttachCGroupSockOps, Program: prog})
		if err != nil {
			return fmt.Errorf("attach to cgroup: %w", err)
		}
		return l.Close()
	})
}
