package workload

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// SetPace gives a socket the most that it sends in a second, in bytes of payload;
// all ones take it away.
func SetPace(fd int, pace uint32) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, int(int32(pace))); err != nil {
		return fmt.Errorf("set pace of socket: %w", err)
	}
	return nil
}

// Pace returns the most that a socket sends in a second, in bytes of payload; all
// ones are no bound.
func Pace(fd int) (uint32, error) {
	pace, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
	if err != nil {
		return 0, fmt.Errorf("read pace of socket: %w", err)
	}
	return uint32(pace), nil
}

// SetWindow gives a connection the most that it offers its peer, in bytes.
func SetWindow(fd int, window uint32) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_TCP, unix.TCP_WINDOW_CLAMP, int(int32(window))); err != nil {
		return fmt.Errorf("set window of socket: %w", err)
	}
	return nil
}

// Window returns the most that a connection offers its peer, in bytes.
func Window(fd int) (uint32, error) {
	window, err := unix.GetsockoptInt(fd, unix.SOL_TCP, unix.TCP_WINDOW_CLAMP)
	if err != nil {
		return 0, fmt.Errorf("read window of socket: %w", err)
	}
	return uint32(window), nil
}
