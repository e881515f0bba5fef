package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unbind lets go of all sockets that are bound to one of some devices, by their numbers, of
// processes in a network namespace, which its inode names: their connections go by the
// routes of the host again. What permissions keep from us is passed over.
func Unbind(ctx context.Context, netns uint32, devices map[int]bool) error {
	there := func(p Process) bool {
		info, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", p.PID))
		if err != nil {
			return false
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		return ok && uint32(stat.Ino) == netns
	}
	return EachSocket(ctx, there, func(p Process, s Socket) error {
		device, err := unix.GetsockoptInt(s.FD, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX)
		if errors.Is(err, unix.ENOPROTOOPT) || err == nil && !devices[device] { // before 5.1 nobody tells
			return nil
		}
		if err == nil {
			err = unix.SetsockoptInt(s.FD, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, 0)
		}
		if err != nil {
			return fmt.Errorf("unbind a socket of process %d: %w", p.PID, err)
		}
		return nil
	})
}
