package workload

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// markFlip is the bit by which a mark is changed for a moment: the one that the
// masks of routing rules and packet filters use least.
const markFlip = 1 << 31

// ResetRoute makes a running flow choose its transmit queue anew. A connected
// TCP or UDP socket caches the queue of its packets; TCP chooses again only
// when nothing of the flow is queued, and UDP never. From 6.19 on UDP does as
// TCP does, and both choose again once a second (net.core.txq_reselection_ms).
// Where the queue is the class, as on mqprio, a change of priority therefore may
// not show until the cached route is dropped, and the queue with it (sk_dst_reset).
//
// SO_BINDTOIFINDEX drops it even if the index is the one that the socket is
// bound to already, and changes nothing else. MPTCP refuses that once it is
// connected, and kernels before 5.1 do not know it: there SO_MARK is changed
// to another value and back. In between, a few microseconds, packets may leave
// with that other mark; and a mark that the owner sets in between is lost.
//
// Sockets that cache no queue (raw, listening, not connected) are left alone: a
// listener's mark, moreover, would be inherited by what it accepts.
func ResetRoute(fd int) error {
	protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err != nil {
		return fmt.Errorf("reset route: %w", err)
	}
	switch protocol {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_MPTCP:
	default:
		return nil
	}
	if _, err := unix.Getpeername(fd); errors.Is(err, unix.ENOTCONN) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reset route: %w", err)
	}
	if protocol != unix.IPPROTO_MPTCP && rebind(fd) == nil {
		return nil
	}
	if err := toggleMark(fd); err != nil {
		return fmt.Errorf("reset route: %w", err)
	}
	return nil
}

// rebind binds a socket to the device to which it is bound, mostly to none.
func rebind(fd int) error {
	index, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX)
	if err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, index)
}

// toggleMark changes a socket's mark and restores it. Setting the same mark
// again would reset nothing.
func toggleMark(fd int) error {
	mark, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK)
	if err != nil {
		return fmt.Errorf("read mark: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(int32(uint32(mark)^markFlip))); err != nil {
		return fmt.Errorf("change mark: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, mark); err != nil {
		return fmt.Errorf("restore mark %#x: %w", uint32(mark), err)
	}
	return nil
}
