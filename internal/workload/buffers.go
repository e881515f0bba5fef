package workload

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A Buffer is one of the two that a socket has. Sizes are what the kernel counts, its
// bookkeeping included: twice of what an application asks for.
type Buffer struct {
	name           string
	option, forced int
	lock           int // its bit of SO_BUF_LOCK
}

// The buffers of a socket.
var (
	SendBuffer    = Buffer{"send", unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, 1}
	ReceiveBuffer = Buffer{"receive", unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, 2}
)

// ErrLocked says that this kernel gives no buffer back to TCP that somebody has set:
// it came with 5.14.
var ErrLocked = errors.New("this kernel leaves buffers locked that were set")

// soBufLock tells which buffers of a socket are locked: TCP does not fit their size.
const soBufLock = 72

// Size returns how large a socket's buffer is.
func (b Buffer) Size(fd int) (uint32, error) {
	size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, b.option)
	if err != nil {
		return 0, fmt.Errorf("read %s buffer of socket: %w", b.name, err)
	}
	return uint32(size), nil
}

// SetSize makes a socket's buffer so large, and locks it. Who may not go beyond what the
// host allows applications (net.core.wmem_max, rmem_max) gets no more than that.
func (b Buffer) SetSize(fd int, size uint32) error {
	half := int(size / 2) // the kernel doubles it
	err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.forced, half)
	if errors.Is(err, unix.EPERM) {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.option, half)
	}
	if err != nil {
		return fmt.Errorf("set %s buffer of socket: %w", b.name, err)
	}
	return nil
}

// Unlock lets TCP fit the size of a socket's buffer again. It returns ErrLocked.
func (b Buffer) Unlock(fd int) error {
	locks, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soBufLock)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, soBufLock, locks&^b.lock)
	}
	if errors.Is(err, unix.ENOPROTOOPT) {
		return ErrLocked
	}
	if err != nil {
		return fmt.Errorf("unlock %s buffer of socket: %w", b.name, err)
	}
	return nil
}
