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
	Protocol uint8          // unix.IPPROTO_TCP or unix.IPPROTO_UDP
	Local    netip.AddrPort // IPv4-mapped addresses as IPv4
	Remote   netip.AddrPort // the zero AddrPort if not connected
	Inode    uint64         // 0 if no process has it (any more), as in TIME_WAIT
	Cgroup   uint64         // kernfs id of its v2 cgroup; 0 where the kernel does not tell
	UID      uint32         // of its maker; mostly 0 if no process has it
	Device   uint32         // index of the device that it is bound to, 0 for none
}

// FindSockets lists the sockets that a spec names in the network namespace of
// the calling thread, which must be locked to its namespace: mostly one, several
// with SO_REUSEPORT, none if there is no such socket.
func FindSockets(ctx context.Context, spec SocketSpec) ([]SocketEntry, error) {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, fmt.Errorf("find socket %s: open sock_diag: %w", spec, err)
	}
	defer conn.Close()
	var found []SocketEntry
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} { // one of IPv6 may speak IPv4
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("find socket %s: %w", spec, err)
		}
		entries, err := dumpSockets(conn, family, spec)
		if err != nil {
			return nil, fmt.Errorf("find socket %s: %w", spec, err)
		}
		for _, entry := range entries {
			if spec.matches(entry) {
				found = append(found, entry)
			}
		}
	}
	return found, nil
}

// PortSockets lists the sockets of a protocol that have a local port, in the network namespace of
// the calling thread, which must be locked to its namespace.
func PortSockets(ctx context.Context, protocol uint8, port uint16) ([]SocketEntry, error) {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, fmt.Errorf("list sockets of port %d: open sock_diag: %w", port, err)
	}
	defer conn.Close()
	spec := SocketSpec{Protocol: protocol, Local: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}
	var found []SocketEntry
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list sockets of port %d: %w", port, err)
		}
		entries, err := dumpSockets(conn, family, spec)
		if err != nil {
			return nil, fmt.Errorf("list sockets of port %d: %w", port, err)
		}
		found = append(found, entries...)
	}
	return found, nil
}

// Owners lists the processes that have a descriptor of a socket, by its inode;
// nobody has 0.
func Owners(ctx context.Context, inode uint64) ([]Process, error) {
	if inode == 0 {
		return nil, nil
	}
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
		if err == nil && socketInode(link) == inode {
			p, err := r.open(pid, dir)
			return p, err == nil
		}
	}
	return Process{}, false
}

// From linux/sock_diag.h and linux/inet_diag.h, which x/sys has not.
const (
	sockDiagByFamily  = 20
	inetDiagReqStored = 2 // INET_DIAG_REQ_SK_BPF_STORAGES, an attribute of the request
	inetDiagReqProto  = 3 // INET_DIAG_REQ_PROTOCOL, likewise
	inetDiagSkMeminfo = 7
	inetDiagStored    = 20 // INET_DIAG_SK_BPF_STORAGES, since 5.7
	inetDiagCgroupID  = 21 // since 5.9
	diagRequestSize   = 56
	diagMessageSize   = 72
)

// dumpSockets lists the sockets of a family that have a spec's protocol and
// ports. The kernel leaves the others out, a port of 0 being any: a host may have
// a hundred thousand.
func dumpSockets(conn *netlink.Conn, family uint8, spec SocketSpec) ([]SocketEntry, error) {
	messages, err := diagQuestion{family: family, protocol: int(spec.Protocol), local: spec.Local.Port(), remote: spec.Remote.Port()}.ask(conn)
	if err != nil {
		return nil, err
	}
	entries := make([]SocketEntry, 0, len(messages))
	for _, m := range messages {
		entry, err := parseDiag(m.Data)
		if err != nil {
			return nil, fmt.Errorf("dump sockets of protocol %d: %w", spec.Protocol, err)
		}
		entry.Protocol = spec.Protocol
		entries = append(entries, entry)
	}
	return entries, nil
}

// A diagQuestion is what the kernel's socket tables are asked for.
type diagQuestion struct {
	family        uint8
	protocol      int    // may be larger than 255, as MPTCP's
	local, remote uint16 // ports; 0: any
	memory        bool   // with what the sockets hold
	storages      []int  // and with what is stored of them in maps with these descriptors
}

// ask returns a struct inet_diag_msg with attributes for each socket, in whatever state.
// It wraps errors.ErrUnsupported.
func (q diagQuestion) ask(conn *netlink.Conn) ([]netlink.Message, error) {
	request := make([]byte, diagRequestSize) // struct inet_diag_req_v2
	request[0], request[1] = q.family, uint8(min(q.protocol, unix.IPPROTO_RAW))
	if q.memory {
		request[2] = 1 << (inetDiagSkMeminfo - 1)
	}
	binary.NativeEndian.PutUint32(request[4:], ^uint32(0)) // all states
	binary.BigEndian.PutUint16(request[8:], q.local)
	binary.BigEndian.PutUint16(request[10:], q.remote)
	more, err := q.attributes()
	if err != nil {
		return nil, fmt.Errorf("ask for sockets of protocol %d: %w", q.protocol, err)
	}
	request = append(request, more...)
	messages, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request | netlink.Dump},
		Data:   request,
	})
	if errors.Is(err, unix.ENOENT) {
		err = fmt.Errorf("kernel without socket diagnostics for this protocol: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("dump sockets of protocol %d: %w", q.protocol, err)
	}
	return messages, nil
}

func (q diagQuestion) attributes() ([]byte, error) {
	attributes := netlink.NewAttributeEncoder()
	if len(q.storages) > 0 {
		attributes.Nested(inetDiagReqStored, func(maps *netlink.AttributeEncoder) error {
			const descriptor = 1 // SK_DIAG_BPF_STORAGE_REQ_MAP_FD
			for _, fd := range q.storages {
				maps.Uint32(descriptor, uint32(fd))
			}
			return nil
		})
	}
	if q.protocol > unix.IPPROTO_RAW {
		attributes.Uint32(inetDiagReqProto, uint32(q.protocol))
	}
	return attributes.Encode()
}

// parseDiag reads a struct inet_diag_msg and its attributes.
func parseDiag(data []byte) (SocketEntry, error) {
	if len(data) < diagMessageSize {
		return SocketEntry{}, fmt.Errorf("parse inet_diag_msg: %d bytes, want %d", len(data), diagMessageSize)
	}
	family := data[0]
	entry := SocketEntry{
		Local: diagAddress(family, data[8:24], data[4:]),
		Inode: uint64(binary.NativeEndian.Uint32(data[68:])),
		UID:   binary.NativeEndian.Uint32(data[64:]),

		Device: binary.NativeEndian.Uint32(data[40:]),
	}
	if remote := diagAddress(family, data[24:40], data[6:]); remote.Port() != 0 {
		entry.Remote = remote
	}
	attributes, err := netlink.NewAttributeDecoder(data[diagMessageSize:])
	if err != nil {
		return SocketEntry{}, fmt.Errorf("parse inet_diag_msg: %w", err)
	}
	for attributes.Next() {
		if attributes.Type() == inetDiagCgroupID {
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
