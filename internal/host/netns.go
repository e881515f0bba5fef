package host

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// threadNetns is the calling thread's namespace. /proc/self would be the main
// thread's.
const threadNetns = "/proc/thread-self/ns/net"

// InNetns runs fn in the network namespace at path, which is anything that
// setns takes: /run/netns/NAME, /proc/PID/ns/net. With the empty path fn runs
// where the caller is. Else it runs on a thread of its own and must not leave
// work in the namespace to other goroutines: those are outside. The error is
// fn's, or says why the namespace could not be entered; fn did not run then.
func InNetns(path string, fn func() error) error {
	if path == "" {
		return fn()
	}
	return onThread(func() error { return setns(path) }, fn)
}

func setns(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", path, err)
	}
	return nil
}

// NetnsNumber is the number of the calling thread's network namespace: its inode.
func NetnsNumber() (uint32, error) {
	info, err := os.Stat(threadNetns)
	if err != nil {
		return 0, fmt.Errorf("read current network namespace: %w", err)
	}
	return uint32(info.Sys().(*syscall.Stat_t).Ino), nil
}

// inNewNetns runs fn in a network namespace that is gone afterwards. Its lo has
// index 1 and is down.
func inNewNetns(fn func() error) error {
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make network namespace: %w", err)
		}
		return nil
	}, fn)
}

// onThread runs enter and fn on one thread and brings that thread back to the
// namespace it came from. It runs on a goroutine of its own, so that no caller
// is left in the wrong namespace by a thread that could not go back.
func onThread(enter, fn func() error) (err error) {
	returned, done := false, make(chan struct{})
	go func() {
		defer close(done)
		err = visit(enter, fn)
		returned = true
	}()
	<-done
	if !returned {
		runtime.Goexit() // fn did, as a test that fails does
	}
	return err
}

func visit(enter, fn func() error) error {
	runtime.LockOSThread()
	home, err := os.Open(threadNetns)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("read current network namespace: %w", err)
	}
	defer home.Close()
	defer func() {
		// A thread that cannot go back stays locked: the runtime ends it with
		// this goroutine.
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	if err := enter(); err != nil {
		return err
	}
	return fn()
}
