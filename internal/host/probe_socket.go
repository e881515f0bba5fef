package host

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// skStorage writes socket local storage through the descriptor of a socket and
// reads it back.
func skStorage() error {
	storage, err := newSKStorage()
	if err != nil {
		return err
	}
	defer storage.Close()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer unix.Close(socket)

	const written = uint32(0x7e1f)
	if err := storage.Put(uint32(socket), written); err != nil {
		return fmt.Errorf("write socket storage: %w", err)
	}
	var read uint32
	if err := storage.Lookup(uint32(socket), &read); err != nil {
		return fmt.Errorf("read socket storage: %w", err)
	}
	if read != written {
		return fmt.Errorf("read socket storage: got %#x, wrote %#x", read, written)
	}
	return nil
}

// newSKStorage makes a map as Weir uses it: accepted sockets inherit what
// their listener holds.
func newSKStorage() (*ebpf.Map, error) {
	word := &btf.Int{Name: "unsigned int", Size: 4}
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: programName, Type: ebpf.SkStorage, Flags: unix.BPF_F_NO_PREALLOC | unix.BPF_F_CLONE,
		Key: word, KeySize: 4, Value: word, ValueSize: 4,
	})
	if err != nil {
		return nil, narrowed(err, features.HaveMapType(ebpf.SkStorage))
	}
	return m, nil
}

// sockCreate attaches to an empty cgroup what tells a new socket who made it:
// a cgroup/sock_create program with access to the task and to socket storage.
func sockCreate() error {
	storage, err := newSKStorage()
	if err != nil {
		return err
	}
	defer storage.Close()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: programName, Type: ebpf.CGroupSock, AttachType: ebpf.AttachCGroupInetSockCreate, License: "GPL",
		Instructions: creator(storage),
	})
	if err != nil {
		for _, helper := range []asm.BuiltinFunc{asm.FnGetCurrentTask, asm.FnProbeReadKernel, asm.FnSkStorageGet} {
			if err := features.HaveProgramHelper(ebpf.CGroupSock, helper); err != nil {
				return err
			}
		}
		return err
	}
	defer prog.Close()
	return inNewCgroup(func(path string) error {
		l, err := link.AttachCgroup(link.CgroupOptions{Path: path, Attach: ebpf.AttachCGroupInetSockCreate, Program: prog})
		if err != nil {
			return fmt.Errorf("attach to cgroup: %w", err)
		}
		return l.Close()
	})
}

// creator reads a word of the current task, stores nothing, lets the socket be.
func creator(storage *ebpf.Map) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.FnGetCurrentTask.Call(),
		asm.Mov.Reg(asm.R3, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R10),
		asm.Add.Imm(asm.R1, -8),
		asm.Mov.Imm(asm.R2, 8),
		asm.FnProbeReadKernel.Call(),
		asm.LoadMapPtr(asm.R1, storage.FD()),
		asm.Mov.Reg(asm.R2, asm.R6), // the context of a sock_create program is its socket
		asm.Mov.Imm(asm.R3, 0),
		asm.Mov.Imm(asm.R4, unix.BPF_LOCAL_STORAGE_GET_F_CREATE),
		asm.FnSkStorageGet.Call(),
		asm.Mov.Imm(asm.R0, 1),
		asm.Return(),
	}
}
