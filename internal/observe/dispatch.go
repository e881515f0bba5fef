package observe

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// dispatch is what it takes the kernel to run a program at a tracepoint that does nothing: its own account of programs
// begins when one runs already, and what comes before is often more.
func dispatch() (took time.Duration, err error) {
	nothing, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "task_rename", License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return 0, fmt.Errorf("find out what a program takes that does nothing: %w", err)
	}
	defer nothing.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	without, err := renaming()
	if err != nil {
		return 0, err
	}
	attached, err := link.AttachTracing(link.TracingOptions{Program: nothing})
	if err != nil {
		return 0, fmt.Errorf("find out what a program takes that does nothing: %w", err)
	}
	defer func() { err = errors.Join(err, attached.Close()) }()
	with, err := renaming()
	return max(0, with-without), err
}

// renaming is what it takes this thread, at best, to get the name that it has.
func renaming() (best time.Duration, err error) {
	const batches, batch = 40, 100
	var name [16]byte
	at := uintptr(unsafe.Pointer(&name[0]))
	if err := unix.Prctl(unix.PR_GET_NAME, at, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("read the name of a thread: %w", err)
	}
	best = time.Hour
	for range batches {
		began := time.Now()
		for range batch {
			if err := unix.Prctl(unix.PR_SET_NAME, at, 0, 0, 0); err != nil {
				return 0, fmt.Errorf("name a thread: %w", err)
			}
		}
		best = min(best, time.Since(began)/batch)
	}
	return best, nil
}
