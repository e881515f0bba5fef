package workload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A SocketEntry is what the kernel's socket tables say of a socket.
type SocketEntry struct {
	Protocol  uint8 // unix.IPPROTO_TCP or unix.IPPROTO_UDP
	Family    uint8 // unix.AF_INET or unix.AF_INET6
	State     uint8 // as in tcp_states.h: 1 established, 7 not connected, 10 listening
	Local     netip.AddrPort
	Remote    netip.AddrPort // the zero AddrPort if not connected
	Interface uint32         // index of the device that it is bound to, or 0
	Inode     uint64         // 0 if no process has it (any more), as in TIME_WAIT
	UID       uint32
	Cgroup    uint64 // kernfs id of its v2 cgroup; 0 where the kernel does not tell
	Mark      uint32 // 0 without CAP_NET_ADMIN
}

// SocketTable lists the TCP and UDP sockets, IPv4 and IPv6, of the network
// namespace of the calling thread, which must be locked to its namespace.
func SocketTable(ctx context.Context) ([]SocketEntry, error) {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, fmt.Errorf("open sock_diag: %w", err)
	}
	defer conn.Close()
	var table []SocketEntry
	for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("dump sockets: %w", err)
			}
			entries, err := dumpSockets(conn, protocol, family)
			if err != nil {
				return nil, err
			}
			table = append(table, entries...)
		}
	}
	return table, nil
}

// FindSockets lists the sockets that a spec names in the network namespace of
// the calling thread: mostly one, several with SO_REUSEPORT, none if there is
// no such socket.
func FindSockets(ctx context.Context, spec SocketSpec) ([]SocketEntry, error) {
	table, err := SocketTable(ctx)
	if err != nil {
		return nil, fmt.Errorf("find socket %s: %w", spec, err)
	}
	var found []SocketEntry
	for _, entry := range table {
		if spec.matches(entry) {
			found = append(found, entry)
		}
	}
	return found, nil
}

// Owners lists the processes that have a descriptor of a socket, by its inode.
func Owners(ctx context.Context, inode uint64) ([]Process, error) {
	pids, err := processIDs()
	if err != nil {
		return nil, fmt.Errorf("find owners of socket %d: %w", inode, err)
	}
	r := new(reader)
	var owners []Process
	for _, pid := range pids {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("find owners of socket %d: %w", inode, err)
		}
		if p, ok := r.owner(pid, inode); ok {
			owners = append(owners, p)
		}
	}
	return owners, nil
}

// owner reads a process if one of its descriptors is the socket. What we may
// not see it does not have.
func (r *reader) owner(pid uint32, inode uint64) (Process, bool) {
	dir, err := openProc(pid)
	if err != nil {
		return Process{}, false
	}
	defer dir.close()
	numbers, err := dir.descriptors()
	if err != nil {
		return Process{}, false
	}
	for _, number := range numbers {
		link, err := dir.link("fd/" + strconv.Itoa(number))
		if err == nil && inodeOf(link, "socket:[") == inode {
			p, err := r.open(pid, dir)
			return p, err == nil
		}
	}
	return Process{}, false
}

// From linux/sock_diag.h and linux/inet_diag.h, which x/sys has not.
const (
	sockDiagByFamily = 20
	inetDiagMark     = 15
	inetDiagCgroupID = 21 // since 5.9
	diagRequestSize  = 56
	diagMessageSize  = 72
)

func dumpSockets(conn *netlink.Conn, protocol, family uint8) ([]SocketEntry, error) {
	request := make([]byte, diagRequestSize) // struct inet_diag_req_v2
	request[0], request[1] = family, protocol
	binary.NativeEndian.PutUint32(request[4:], ^uint32(0)) // all states
	messages, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request | netlink.Dump},
		Data:   request,
	})
	if errors.Is(err, unix.ENOENT) {
		err = fmt.Errorf("kernel without socket diagnostics for this protocol: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("dump sockets of protocol %d: %w", protocol, err)
	}
	entries := make([]SocketEntry, 0, len(messages))
	for _, m := range messages {
		entry, err := parseDiag(m.Data)
		if err != nil {
			return nil, fmt.Errorf("dump sockets of protocol %d: %w", protocol, err)
		}
		entry.Protocol = protocol
		entries = append(entries, entry)
	}
	return entries, nil
}

// parseDiag reads a struct inet_diag_msg and its attributes.
func parseDiag(data []byte) (SocketEntry, error) {
	if len(data) < diagMessageSize {
		return SocketEntry{}, fmt.Errorf("parse inet_diag_msg: %d bytes, want %d", len(data), diagMessageSize)
	}
	entry := SocketEntry{
		Family:    data[0],
		State:     data[1],
		Interface: binary.NativeEndian.Uint32(data[40:]),
		UID:       binary.NativeEndian.Uint32(data[64:]),
		Inode:     uint64(binary.NativeEndian.Uint32(data[68:])),
	}
	entry.Local = diagAddress(entry.Family, data[8:24], data[4:])
	if remote := diagAddress(entry.Family, data[24:40], data[6:]); remote.Port() != 0 {
		entry.Remote = remote
	}
	attributes, err := netlink.NewAttributeDecoder(data[diagMessageSize:])
	if err != nil {
		return SocketEntry{}, fmt.Errorf("parse inet_diag_msg: %w", err)
	}
	for attributes.Next() {
		switch attributes.Type() {
		case inetDiagMark:
			entry.Mark = attributes.Uint32()
		case inetDiagCgroupID:
			entry.Cgroup = attributes.Uint64()
		}
	}
	if err := attributes.Err(); err != nil {
		return SocketEntry{}, fmt.Errorf("parse inet_diag_msg: %w", err)
	}
	return entry, nil
}

func diagAddress(family uint8, address, port []byte) netip.AddrPort {
	number := binary.BigEndian.Uint16(port)
	if family == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(address)), number)
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(address)).Unmap(), number)
}
