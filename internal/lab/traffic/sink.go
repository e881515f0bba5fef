package traffic

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/host"
)

// A Sink is a UDP port whose datagrams the kernel drops as soon as they have
// come all the way to the socket. So no receiver competes with the senders for
// the CPUs, and nobody answers that the port is closed. What arrives the device
// counts.
type Sink struct{ conn net.PacketConn }

// OpenSink opens one in a namespace.
func OpenSink(netns string, at netip.AddrPort) (*Sink, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return onSocket(raw, takeNothing) }}
	s := &Sink{}
	err := host.InNetns(netns, func() (err error) {
		s.conn, err = config.ListenPacket(context.Background(), "udp", at.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open sink at %s: %w", at, err)
	}
	return s, nil
}

// Close closes the port.
func (s *Sink) Close() error { return s.conn.Close() }

// takeNothing gives a socket a filter that keeps 0 bytes of each packet.
func takeNothing(fd int) error {
	program := [1]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &program[0]})
	if err != nil {
		return fmt.Errorf("attach filter: %w", err)
	}
	return nil
}
