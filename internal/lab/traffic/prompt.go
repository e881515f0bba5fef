package traffic

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A prompt reads from a connection as soon as something is there: the kernel wakes its thread itself, where Go's poller
// would be a thread more to wake, and no other process keeps that from a CPU. So what a request takes is of the network.
type prompt struct {
	conn *net.TCPConn
	raw  syscall.RawConn
}

// newPrompt takes the goroutine's thread, which ends with it.
func newPrompt(conn *net.TCPConn) (prompt, error) {
	raw, err := conn.SyscallConn()
	return prompt{conn, raw}, errors.Join(err, hurry())
}

// Read waits for data, and looks now and then whether the connection is still open and has time left.
func (p prompt) Read(data []byte) (int, error) {
	for ready := false; !ready; {
		err := p.raw.Read(func(fd uintptr) bool {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(nap.Milliseconds()))
			ready = n > 0 // a signal ends it early: Go sends itself some
			return true
		})
		if err != nil {
			return 0, err
		}
	}
	return p.conn.Read(data)
}

// hurry takes the goroutine's thread for good, and puts it before all that has no priority in real time; where its
// cgroup may have none, before all others.
func hurry() error {
	runtime.LockOSThread()
	err := realTime(0)
	if errors.Is(err, unix.EPERM) {
		err = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	}
	if err != nil {
		return fmt.Errorf("a thread's priority: %w", err)
	}
	return nil
}

// realTime puts a thread (0: the caller's) before all that has no priority in real time.
func realTime(thread int) error {
	return unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
}

// urgent has all threads of this process go before all others where that is allowed, for good: what it measures is the
// way, and not who has the CPU. A thread that hurries alone may wait for one of its process that does not: on a CPU that
// others take, for as long as a second. And where it is the other that was about to let it go on it takes the CPU itself: Go
// holds a goroutine that comes back from a system call by a bit of its state, for which its thread looks again and again. If
// whoever set that bit has lost the only CPU to this thread, it is the kernel's bound for all of real time (950 ms of a
// second) that ends it.
func urgent() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range tasks { // threads that begin later have it from these
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = realTime(id)
		}
	}
}
