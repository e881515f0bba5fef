package feature

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// smallest returns the smallest program of a type: it returns 1, which passes
// in every hook that Weir uses.
func smallest(typ ebpf.ProgramType, attach ebpf.AttachType) (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weir_probe", Type: typ, AttachType: attach, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	})
}

// loads asks for a program type by loading one.
func loads(typ ebpf.ProgramType, attach ebpf.AttachType) probe {
	return func() error {
		p, err := smallest(typ, attach)
		if err != nil {
			return absentIf(err, unix.EINVAL)
		}
		return p.Close()
	}
}

func skStorage() error {
	u32 := &btf.Int{Name: "u32", Size: 4}
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "weir_probe", Type: ebpf.SkStorage, KeySize: 4, ValueSize: 4, Flags: unix.BPF_F_NO_PREALLOC,
		Key: u32, Value: u32,
	})
	if err != nil {
		return bpfAbsent(absentIf(err, unix.EINVAL))
	}
	return m.Close()
}

// atomics asks for BPF_FETCH, which came with BPF_XCHG and BPF_CMPXCHG.
func atomics() error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weir_probe", Type: ebpf.SocketFilter, License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R0, 1),
			asm.StoreMem(asm.R10, -8, asm.R0, asm.DWord),
			asm.Xchg.Mem(asm.R10, asm.R0, asm.DWord, -8),
			asm.Return(),
		},
	})
	if err != nil {
		return absentIf(err, unix.EINVAL)
	}
	return p.Close()
}

// tcx attaches to lo of a new namespace by the link that came with 6.6.
func tcx() error {
	return inNetns(func() error {
		p, err := smallest(ebpf.SchedCLS, 0)
		if err != nil {
			return err
		}
		defer p.Close()
		l, err := link.AttachTCX(link.TCXOptions{Interface: loopback, Program: p, Attach: ebpf.AttachTCXEgress})
		if err != nil {
			return bpfAbsent(absentIf(err, unix.EINVAL))
		}
		return l.Close()
	})
}

func bpfAbsent(err error) error {
	if errors.Is(err, ebpf.ErrNotSupported) {
		return fmt.Errorf("%w: %w", errAbsent, err)
	}
	return err
}
