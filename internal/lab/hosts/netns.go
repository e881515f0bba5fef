package hosts

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// newNetns makes a network namespace, which lives as long as the file (or
// something in it) does. The calling thread is back where it was afterwards; a
// thread that can not go back ends with its goroutine.
func newNetns() (file *os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		file, err = visitNew()
	}()
	<-done
	return file, err
}

func visitNew() (*os.File, error) {
	const current = "/proc/thread-self/ns/net" // /proc/self is the main thread's
	runtime.LockOSThread()
	home, err := os.Open(current)
	if err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("read current network namespace: %w", err)
	}
	defer home.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("make network namespace: %w", err)
	}
	defer func() {
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	file, err := os.Open(current)
	if err != nil {
		return nil, fmt.Errorf("hold network namespace: %w", err)
	}
	return file, nil
}
