package bind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// named is how the names of our programs begin. The device's index follows: the rest of a
// program can not be read back.
const named = "vrf_"

// boundDevice is the offset of bound_dev_if in struct bpf_sock.
const boundDevice = 0

// program binds each new socket to a device. Index 0 is none. In C it would need a table for
// that number, which would have to be pinned beside it.
func program(index int) (*ebpf.Program, error) {
	// Kernels before 5.11 count programs as locked memory. The limit is put back: a process that
	// becomes a command would hand it on.
	var was unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &was) == nil && rlimit.RemoveMemlock() == nil {
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &was) }()
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: named + strconv.Itoa(index), Type: ebpf.CGroupSock, AttachType: ebpf.AttachCGroupInetSockCreate,
		License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R2, int32(index)),
			asm.StoreMem(asm.R1, boundDevice, asm.R2, asm.Word),
			asm.Mov.Imm(asm.R0, 1),
			asm.Return(),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("load program: %w", err)
	}
	return p, nil
}

// Attach binds the sockets that are made in a cgroup from now on to a device. What is there
// of ours or of iproute2's is replaced. Cgroups below may have no program of this kind of
// their own then; programs of cgroups above run afterwards.
func Attach(cgroup string, index int) error {
	p, err := program(index)
	if err != nil {
		return fmt.Errorf("bind sockets of %s: %w", cgroup, err)
	}
	defer p.Close()
	dir, err := os.Open(cgroup)
	if err != nil {
		return fmt.Errorf("bind sockets: %w", err)
	}
	defer dir.Close()
	err = link.RawAttachProgram(link.RawAttachProgramOptions{
		Target: int(dir.Fd()), Program: p, Attach: ebpf.AttachCGroupInetSockCreate,
	})
	if err != nil {
		return fmt.Errorf("bind sockets of %s: attach program: %w", cgroup, err)
	}
	return nil
}

// Devices are the indices of the devices that programs of ours bind the new sockets of a
// cgroup to, those of cgroups above included. Who may not look finds fs.ErrPermission.
func Devices(cgroup string) ([]int, error) {
	dir, err := os.Open(cgroup)
	if err != nil {
		return nil, fmt.Errorf("read programs: %w", err)
	}
	defer dir.Close()
	programs, err := link.QueryPrograms(link.QueryOptions{
		Target: int(dir.Fd()), Attach: ebpf.AttachCGroupInetSockCreate, QueryFlags: unix.BPF_F_QUERY_EFFECTIVE,
	})
	if errors.Is(err, ebpf.ErrNotSupported) {
		// The library asks without that privilege whether there is such a thing, and is refused again.
		err = fs.ErrPermission
	}
	if err != nil {
		return nil, fmt.Errorf("read programs of %s: %w", cgroup, err)
	}
	var found []int
	for _, p := range programs.Programs {
		index, err := deviceOf(p.ID)
		if errors.Is(err, fs.ErrNotExist) {
			continue // replaced meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("read programs of %s: %w", cgroup, err)
		}
		if index > 0 {
			found = append(found, index)
		}
	}
	return found, nil
}

// deviceOf is the device of a program of ours, 0 of another's.
func deviceOf(id ebpf.ProgramID) (int, error) {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return 0, err
	}
	number, ok := strings.CutPrefix(info.Name, named)
	if !ok {
		return 0, nil
	}
	index, err := strconv.Atoi(number)
	if err != nil || index < 0 {
		return 0, nil // somebody else's name
	}
	return index, nil
}

// Pin keeps a program that binds to a device in the BPF file system, for others to attach.
// One that is there is replaced.
func Pin(path string, index int) error {
	p, err := program(index)
	if err != nil {
		return fmt.Errorf("pin %s: %w", path, err)
	}
	defer p.Close()
	if err := Unpin(path); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("pin %s: %w", path, err)
	}
	if err := p.Pin(path); err != nil {
		return fmt.Errorf("pin %s: %w", path, err)
	}
	return nil
}

// Unpin takes away what [Pin] left. One that is absent is fine.
func Unpin(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unpin: %w", err)
	}
	_ = os.Remove(filepath.Dir(path)) // with the last one
	return nil
}

// New is the index of the device that a new socket of this process is bound to, 0 if it is
// bound to none: whoever does it, and by whatever means.
func New() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("make socket: %w", err)
	}
	defer unix.Close(fd)
	index, err := Of(fd)
	if err != nil {
		return 0, err
	}
	return index, nil
}

// Of is the index of the device that a socket is bound to, 0 for none.
func Of(fd int) (int, error) {
	index, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX)
	if err != nil {
		return 0, fmt.Errorf("read a socket's device: %w", err)
	}
	return index, nil
}
