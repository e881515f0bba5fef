package workload

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// LargestBuffers returns the largest buffers that an application may ask for a socket, in
// bytes as the kernel counts them: twice net.core.wmem_max and net.core.rmem_max.
// A socket is asked, since older kernels show these only in the host's own network namespace.
func LargestBuffers() (send, receive uint32, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("read the largest buffers: %w", err)
	}
	defer unix.Close(fd)
	if send, err = largestBuffer(fd, unix.SO_SNDBUF); err != nil {
		return 0, 0, err
	}
	receive, err = largestBuffer(fd, unix.SO_RCVBUF)
	return send, receive, err
}

// largestBuffer asks for more than there can be, and returns what it got.
func largestBuffer(fd, option int) (uint32, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, math.MaxInt32/2); err != nil {
		return 0, fmt.Errorf("ask for the largest buffer: %w", err)
	}
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, option)
	if err != nil {
		return 0, fmt.Errorf("read the largest buffer: %w", err)
	}
	return uint32(n), nil
}
