package workload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// A TCPSocket is one that has buffers: what only waits for a handshake to end, or for
// late packets after the connection, has none and is left out.
type TCPSocket struct {
	SocketEntry
	MPTCP         bool   // the connection that an application has; its subflows are sockets of their own
	State         string // as ss calls it: "established", "listen", …
	Memory        plan.SocketMemory
	ReceiveBuffer uint64 // the most that Memory.Receive may be
	SendBuffer    uint64 // the most that Memory.Send may be before the application has to wait
	Unread        uint64 // bytes of data in Memory.Receive that are in order
	Unacked       uint64 // bytes of data in Memory.Send
	Stored        Stored // what maps of BPF have of it, as far as was asked
}

// Stored is what is stored of a socket, by the ids of the maps.
type Stored map[uint32][]byte

// Accepted reports whether a socket was handed to a process, or has no need to be. One that
// is open and that nobody has waits in the queue of a listener.
func (s TCPSocket) Accepted() bool {
	return s.Inode != 0 || s.State != tcpStates[tcpEstablished] && s.State != tcpStates[tcpCloseWait]
}

// Listens reports whether connections are accepted from the socket.
func (s TCPSocket) Listens() bool { return s.State == tcpStates[tcpListen] }

// States of TCP, from net/tcp_states.h.
const (
	tcpEstablished = 1
	tcpCloseWait   = 8
	tcpListen      = 10
)

// tcpStates are their names.
var tcpStates = [...]string{
	"unknown", "established", "syn-sent", "syn-recv", "fin-wait-1", "fin-wait-2",
	"time-wait", "closed", "close-wait", "last-ack", "listen", "closing", "syn-recv", "bound",
}

// TCPSockets lists the TCP sockets of the network namespace of the calling thread, which
// must be locked to its namespace, with what they hold and with what is stored of them in
// maps with these descriptors. So even that is known of a socket that no process has open.
func TCPSockets(ctx context.Context, storages ...int) ([]TCPSocket, error) {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, fmt.Errorf("list TCP sockets: open sock_diag: %w", err)
	}
	defer conn.Close()
	var all []TCPSocket
	for _, protocol := range []int{unix.IPPROTO_TCP, unix.IPPROTO_MPTCP} {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("list TCP sockets: %w", err)
			}
			messages, err := diagQuestion{family: family, protocol: protocol, memory: true, storages: storages}.ask(conn)
			if errors.Is(err, errors.ErrUnsupported) && protocol == unix.IPPROTO_MPTCP {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list TCP sockets: %w", err)
			}
			for _, m := range messages {
				s, full, err := parseTCP(m.Data)
				if err != nil {
					return nil, fmt.Errorf("list TCP sockets: %w", err)
				}
				if s.MPTCP = protocol == unix.IPPROTO_MPTCP; full {
					all = append(all, s)
				}
			}
		}
	}
	return all, nil
}

// Of the array in INET_DIAG_SKMEMINFO: what is where, from linux/sock_diag.h.
const (
	meminfoReceive       = 0
	meminfoReceiveBuffer = 1
	meminfoSendBuffer    = 3
	meminfoReserved      = 4
	meminfoSend          = 5
	meminfoLength        = 6 // so far as it is read
)

// parseTCP reads a struct inet_diag_msg and its attributes; full is a socket with buffers.
func parseTCP(data []byte) (s TCPSocket, full bool, err error) {
	if s.SocketEntry, err = parseDiag(data); err != nil {
		return s, false, err
	}
	s.Protocol = unix.IPPROTO_TCP
	if state := int(data[1]); state < len(tcpStates) {
		s.State = tcpStates[state]
	} else {
		s.State = tcpStates[0]
	}
	if !s.Listens() { // of a listener these are connections
		s.Unread = uint64(binary.NativeEndian.Uint32(data[56:]))
		s.Unacked = uint64(binary.NativeEndian.Uint32(data[60:]))
	}
	attributes, err := netlink.NewAttributeDecoder(data[diagMessageSize:])
	if err != nil {
		return s, false, fmt.Errorf("parse inet_diag_msg: %w", err)
	}
	for attributes.Next() {
		switch b := attributes.Bytes(); {
		case attributes.Type() == inetDiagSkMeminfo && len(b) >= 4*meminfoLength:
			s.meminfo(b)
			full = true
		case attributes.Type() == inetDiagStored:
			attributes.Nested(s.stored)
		}
	}
	if err := attributes.Err(); err != nil {
		return s, false, fmt.Errorf("parse inet_diag_msg: %w", err)
	}
	return s, full, nil
}

func (s *TCPSocket) meminfo(b []byte) {
	at := func(i int) uint64 { return uint64(binary.NativeEndian.Uint32(b[4*i:])) }
	s.Memory = plan.SocketMemory{Receive: at(meminfoReceive), Send: at(meminfoSend)}
	// It is below 0 for a moment where the kernel takes first and charges then.
	if reserved := int32(at(meminfoReserved)); reserved > 0 {
		s.Memory.Reserved = uint64(reserved)
	}
	s.ReceiveBuffer, s.SendBuffer = at(meminfoReceiveBuffer), at(meminfoSendBuffer)
}

// stored reads what maps have of a socket: of each its id and the value.
func (s *TCPSocket) stored(maps *netlink.AttributeDecoder) error {
	const one, id, value = 1, 2, 3 // SK_DIAG_BPF_STORAGE, and in it …_MAP_ID and …_MAP_VALUE
	for maps.Next() {
		if maps.Type() != one {
			continue
		}
		maps.Nested(func(m *netlink.AttributeDecoder) error {
			var of uint32
			for m.Next() {
				switch m.Type() {
				case id:
					of = m.Uint32()
				case value:
					if s.Stored == nil {
						s.Stored = Stored{}
					}
					s.Stored[of] = m.Bytes()
				}
			}
			return nil
		})
	}
	return nil
}
