package screen

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An action is a struct sigaction with room for that of any machine; the zero value is what
// the kernel does by default.
type action [8]uint64

// raise has a signal do what it does to a process that does not listen. Where it stops the
// process this returns when that goes on; where nobody could continue it (its group is an
// orphan) at once. It goes to this very thread, so that it is done by then.
//
// signal.Reset would not do: the runtime keeps its handler, and that ignores SIGTSTP.
func raise(s unix.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var was, byDefault action
	exchange(s, &byDefault, &was)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), s)
	exchange(s, &was, nil)
}

func exchange(s unix.Signal, to, was *action) {
	const setSize = 8 // of a set of signals
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(was)), setSize, 0, 0)
}
