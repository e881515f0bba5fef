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
			atomic(asm.FetchAdd, asm.R10, asm.R1, -8),
			asm.Mov.Imm(asm.R0, 2), // what is expected there
			atomic(asm.CmpXchg, asm.R10, asm.R1, -8),
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

// atomic is op on a word in memory. The library (v0.22) encodes every one as a plain
// addition, which old kernels have, unless the constant says which it is.
func atomic(op asm.AtomicOp, dst, src asm.Register, offset int16) asm.Instruction {
	ins := op.Mem(dst, src, asm.DWord, offset)
	ins.Constant = int64(op >> 8)
	return ins
}

// tailCalls loads a program that has a function and goes on in another program, as
// link_egress does where a contract has a limit. Some machines' JITs can do one or
// the other (arm64 before 6.0).
func tailCalls() error {
	others, err := ebpf.NewMap(&ebpf.MapSpec{Name: programName, Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return fmt.Errorf("create program array: %w", err)
	}
	defer others.Close()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: programName, Type: ebpf.SchedCLS, License: "Apache-2.0",
		Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.Call.Label("function"),
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.LoadMapPtr(asm.R2, others.FD()),
			asm.Mov.Imm(asm.R3, 0),
			asm.FnTailCall.Call(),
			asm.Mov.Imm(asm.R0, 1),
			asm.Return(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("function"),
			asm.Return(),
		},
	})
	if err != nil {
		return absentOn(fmt.Errorf("load tail call: %w", err), unix.EINVAL, unix.Errno(524))
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
