package feature

import (
	"errors"
	"fmt"
	"io"
	"net"

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

// unlocked lifts the limit of locked memory for a probe: kernels before 5.11 count
// programs against it. It is put back, so that programs under test lift it themselves.
func unlocked(try probe) probe {
	return func() error {
		var was unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &was); err != nil {
			return err
		}
		most := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
		if unix.Setrlimit(unix.RLIMIT_MEMLOCK, &most) == nil {
			defer func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &was) }()
		}
		return try()
	}
}

// atomics asks for BPF_FETCH, which came with BPF_XCHG and BPF_CMPXCHG.
func atomics() error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weir_probe", Type: ebpf.SocketFilter, License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R0, 1),
			asm.StoreMem(asm.R10, -8, asm.R0, asm.DWord),
			{OpCode: asm.Xchg.OpCode(asm.DWord), Dst: asm.R10, Src: asm.R0, Offset: -8, Constant: 0xe1}, // BPF_XCHG
			asm.Return(),
		},
	})
	if err != nil {
		return absentIf(err, unix.EINVAL)
	}
	return p.Close()
}

// tailCalls asks for calls of both kinds in one program: its JIT has to know how.
func tailCalls() error {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "weir_probe", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return err
	}
	defer m.Close()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weir_probe", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.StoreMem(asm.R10, -8, asm.R1, asm.DWord),
			asm.Call.Label("called"),
			asm.LoadMem(asm.R1, asm.R10, -8, asm.DWord),
			asm.LoadMapPtr(asm.R2, m.FD()),
			asm.Mov.Imm(asm.R3, 0),
			asm.FnTailCall.Call(),
			asm.Mov.Imm(asm.R0, 1),
			asm.Return(),
			asm.Mov.Imm(asm.R0, 7).WithSymbol("called"),
			asm.Return(),
		},
	})
	if err != nil {
		return absentIf(err, unix.EINVAL)
	}
	return p.Close()
}

// lateSockOps asks for the callbacks of sockets that are open already: an
// iterator sets their flags as they are, which came with 6.12.
func lateSockOps() error {
	const refused = 1
	u32 := &btf.Int{Name: "u32", Size: 4}
	answer, err := ebpf.NewMap(&ebpf.MapSpec{Name: "weir_probe", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1, Key: u32, Value: u32})
	if err != nil {
		return err
	}
	defer answer.Close()
	const flags, key, value = -4, -8, -12 // on the stack
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weir_probe", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "tcp", License: "GPL",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R1, asm.R1, 8, asm.DWord), // sk_common
			asm.JEq.Imm(asm.R1, 0, "end"),
			asm.FnSkcToTcpSock.Call(),
			asm.JEq.Imm(asm.R0, 0, "end"),
			asm.Mov.Reg(asm.R1, asm.R0),
			asm.StoreImm(asm.R10, flags, 0, asm.Word),
			asm.Mov.Imm(asm.R2, unix.IPPROTO_TCP),
			asm.Mov.Imm(asm.R3, 1008), // TCP_BPF_SOCK_OPS_CB_FLAGS
			asm.Mov.Reg(asm.R4, asm.R10),
			asm.Add.Imm(asm.R4, flags),
			asm.Mov.Imm(asm.R5, 4),
			asm.FnSetsockopt.Call(),
			asm.JEq.Imm(asm.R0, 0, "end"),
			asm.StoreImm(asm.R10, key, 0, asm.Word),
			asm.StoreImm(asm.R10, value, refused, asm.Word),
			asm.LoadMapPtr(asm.R1, answer.FD()),
			asm.Mov.Reg(asm.R2, asm.R10),
			asm.Add.Imm(asm.R2, key),
			asm.Mov.Reg(asm.R3, asm.R10),
			asm.Add.Imm(asm.R3, value),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
			asm.Return(),
		},
	})
	if err != nil {
		return bpfAbsent(absentIf(err, unix.EINVAL, unix.EACCES))
	}
	defer p.Close()
	return inNetns(func() error { return askSocket(p, answer) })
}

// lateSockopts loads an iterator that may set options of sockets, which came with 5.15.
func lateSockopts() error {
	const value = -4 // on the stack
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weir_probe", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceIter, AttachTo: "tcp", License: "GPL",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R1, asm.R1, 8, asm.DWord), // sk_common
			asm.JEq.Imm(asm.R1, 0, "end"),
			asm.FnSkcToTcpSock.Call(),
			asm.JEq.Imm(asm.R0, 0, "end"),
			asm.Mov.Reg(asm.R1, asm.R0),
			asm.StoreImm(asm.R10, value, 0, asm.Word),
			asm.Mov.Imm(asm.R2, unix.SOL_SOCKET),
			asm.Mov.Imm(asm.R3, unix.SO_SNDBUF),
			asm.Mov.Reg(asm.R4, asm.R10),
			asm.Add.Imm(asm.R4, value),
			asm.Mov.Imm(asm.R5, 4),
			asm.FnSetsockopt.Call(),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
			asm.Return(),
		},
	})
	if err != nil {
		return bpfAbsent(absentIf(err, unix.EINVAL, unix.EACCES))
	}
	return p.Close()
}

// askSocket runs an iterator over one listening socket.
func askSocket(p *ebpf.Program, answer *ebpf.Map) error {
	l, err := net.Listen("tcp4", ":0")
	if err != nil {
		return err
	}
	defer l.Close()
	it, err := link.AttachIter(link.IterOptions{Program: p})
	if err != nil {
		return err
	}
	defer it.Close()
	r, err := it.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	var refused uint32
	if err := answer.Lookup(uint32(0), &refused); err != nil {
		return err
	}
	if refused != 0 {
		return errAbsent
	}
	return nil
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
