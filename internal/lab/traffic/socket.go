package traffic

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/host"
)

// limit is the longest time that anything in this package runs, whatever its
// caller says.
const limit = 2 * time.Minute

// Where says from where to where something is sent.
type Where struct {
	Netns      string         // path of the sender's namespace; "" is the caller's
	To         netip.AddrPort // the receiver
	Congestion string         // TCP congestion control; "" is the namespace's default
	Pace       uint64         // bit/s that a stream offers at most; 0: no bound
}

// dial connects. The socket is made by the thread that is inside of the
// namespace: the dialler starts no goroutine for a single literal address.
func (w Where) dial(ctx context.Context) (*net.TCPConn, error) { return w.dialWith(ctx, w.control) }

// dialPlain connects and leaves the buffers to TCP.
func (w Where) dialPlain(ctx context.Context) (*net.TCPConn, error) {
	return w.dialWith(ctx, func(_, _ string, raw syscall.RawConn) error { return onSocket(raw, w.choose) })
}

func (w Where) dialWith(ctx context.Context, control func(network, address string, raw syscall.RawConn) error) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: -1, Control: control}
	dialer.SetMultipathTCP(false)
	var conn net.Conn
	err := host.InNetns(w.Netns, func() (err error) {
		conn, err = dialer.DialContext(ctx, "tcp", w.To.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", w.To, err)
	}
	return conn.(*net.TCPConn), nil
}

// buffer is the size of socket buffers in bytes, of both ends. Automatic ones
// are no larger than the path needs, so that a process that is not scheduled for
// some milliseconds, on a busy machine, would leave the line to its rival. With
// these TCP keeps itself going for 30 ms at 1 Gbit/s.
const buffer = 4 << 20

func (w Where) control(_, _ string, raw syscall.RawConn) error {
	return onSocket(raw, func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer); err != nil {
			return fmt.Errorf("set send buffer: %w", err)
		}
		if w.Pace > 0 {
			// 64 bits since Linux 5.5; older kernels read the lower half.
			if err := unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, w.Pace/8); err != nil {
				return fmt.Errorf("set pacing rate: %w", err)
			}
		}
		return w.choose(fd)
	})
}

// choose sets the congestion control.
func (w Where) choose(fd int) error {
	if w.Congestion == "" {
		return nil
	}
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, w.Congestion); err != nil {
		return fmt.Errorf("set congestion control %s: %w", w.Congestion, err)
	}
	return nil
}

func onSocket(raw syscall.RawConn, fn func(fd int) error) error {
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = fn(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// tcpInfo is what TCP tells of a connection; nil once it is closed.
func tcpInfo(conn *net.TCPConn) *unix.TCPInfo {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil
	}
	var info *unix.TCPInfo
	_ = onSocket(raw, func(fd int) (err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err
	})
	return info
}

// large gives a listener, and what it accepts, a large receive buffer.
func large(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer)
}

// tuned leaves the receive buffer to the kernel, as most applications do: it begins with 64 KiB and grows with what comes.
func tuned(int) error { return nil }

// A peer of which nothing has come for a while is asked whether it is there. One that has reset the connection says so once, and that may be
// lost, or ignored; who then comes by the same port has to send its SYN twice.
var gone = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second}

// listenTCP listens in a namespace. The receive buffer is set before that, where the
// window's scale is chosen.
func listenTCP(netns string, at netip.AddrPort, receive func(fd int) error) (*net.TCPListener, error) {
	// Go's listeners are MPTCP sockets where the kernel has them; a plain one
	// is what is measured.
	config := net.ListenConfig{KeepAliveConfig: gone, Control: func(_, _ string, raw syscall.RawConn) error {
		return onSocket(raw, func(fd int) error {
			if err := receive(fd); err != nil {
				return fmt.Errorf("set receive buffer: %w", err)
			}
			return nil
		})
	}}
	config.SetMultipathTCP(false)
	var listener net.Listener
	err := host.InNetns(netns, func() (err error) {
		listener, err = config.Listen(context.Background(), "tcp", at.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", at, err)
	}
	return listener.(*net.TCPListener), nil
}
