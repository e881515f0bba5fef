package hosts

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// An Onlooker is a program that sees all that a device sends and lets it go on to the next program.
type Onlooker struct {
	name string
	asks bool
}

var (
	// Idle does nothing: what it costs, any program there costs.
	Idle = Onlooker{name: "idle"}
	// Asking looks up what it keeps with the packet's socket: so does any that finds only once whose a socket is.
	Asking = Onlooker{name: "asking", asks: true}
)

// Through runs fn while all that the device sends passes an onlooker.
func (p Plug) Through(o Onlooker, fn func() error) (err error) {
	program, err := o.load()
	if err != nil {
		return fmt.Errorf("load a program that is %s: %w", o.name, err)
	}
	defer program.Close()
	device, err := p.link()
	if err != nil {
		return err
	}
	var attached link.Link
	err = p.Host.do(func() error {
		attached, err = link.AttachTCX(link.TCXOptions{Interface: device.Attrs().Index, Program: program, Attach: ebpf.AttachTCXEgress})
		return err
	})
	if errors.Is(err, ebpf.ErrNotSupported) {
		err = Lacking("tcx")
	}
	if err != nil {
		return fmt.Errorf("have %s run a program that is %s: %w", p, o.name, err)
	}
	defer func() { err = errors.Join(err, attached.Close()) }()
	return fn()
}

func (o Onlooker) load() (*ebpf.Program, error) {
	spec := ebpf.ProgramSpec{Name: o.name, Type: ebpf.SchedCLS, License: "Dual BSD/GPL"}
	if !o.asks {
		spec.Instructions = next()
		return ebpf.NewProgram(&spec)
	}
	long := &btf.Int{Name: "long", Size: 8}
	kept, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "kept", Type: ebpf.SkStorage, Flags: unix.BPF_F_NO_PREALLOC, KeySize: 4, ValueSize: long.Size,
		Key: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}, Value: long,
	})
	if err != nil {
		return nil, err
	}
	defer kept.Close() // the program has it
	spec.Instructions = ask(kept)
	return ebpf.NewProgram(&spec)
}

// next ends what is done with a packet.
func next(first ...asm.Instruction) asm.Instructions {
	return append(first, asm.Mov.Imm(asm.R0, -1).WithSymbol("next"), asm.Return())
}

// ask reads what is kept with a packet's socket, if it has one.
func ask(kept *ebpf.Map) asm.Instructions {
	const socket, create = 168, 1 // struct __sk_buff's sk; BPF_SK_STORAGE_GET_F_CREATE
	return next(
		asm.LoadMem(asm.R2, asm.R1, socket, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, "next"),
		asm.LoadMapPtr(asm.R1, kept.FD()),
		asm.Mov.Imm(asm.R3, 0),
		asm.Mov.Imm(asm.R4, create),
		asm.FnSkStorageGet.Call(),
		asm.JEq.Imm(asm.R0, 0, "next"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
	)
}
