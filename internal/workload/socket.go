package workload

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Socket is an IPv4 or IPv6 socket of a running process, reached through a
// duplicate of the process's file descriptor. While the duplicate is open the
// connection outlives a close by its owner, so it should be short.
type Socket struct {
	FD       int // ours; closed by Close
	Inode    uint64
	Protocol int            // unix.IPPROTO_TCP, IPPROTO_UDP, IPPROTO_MPTCP, …
	Local    netip.AddrPort // IPv4-mapped addresses as IPv4
	Remote   netip.AddrPort // the zero AddrPort if not connected
	UID      uint32         // its maker's, whatever the process has become since
}

// Close closes the duplicate; the owner's socket stays.
func (s Socket) Close() error { return unix.Close(s.FD) }

// Sockets yields the IPv4 and IPv6 sockets of a process, each once however many
// descriptors it has. The caller closes each socket that it gets. An error ends
// the sequence; it wraps ErrGone if the process has exited, and
// fs.ErrPermission if we may not look. The descriptors are those of the process's
// first thread: sockets of threads that do not share them are not seen, nor those
// of a process whose first thread has ended. Sockets that the process passed on
// and closed belong to whom it passed them to.
func Sockets(p Process) iter.Seq2[Socket, error] {
	return func(yield func(Socket, error) bool) {
		if err := eachSocket(p, func(s Socket) bool { return yield(s, nil) }); err != nil {
			yield(Socket{FD: -1}, fmt.Errorf("read sockets of process %d: %w", p.PID, err))
		}
	}
}

func eachSocket(p Process, yield func(Socket) bool) error {
	pidfd, err := p.openPidfd()
	if err != nil {
		return err
	}
	defer unix.Close(pidfd)
	dir, err := openProc(p.PID)
	if err != nil {
		return err
	}
	defer dir.close()

	numbers, err := dir.descriptors()
	if err != nil {
		return err
	}
	seen := make(map[uint64]bool)
	for _, number := range numbers {
		link, err := dir.link("fd/" + strconv.Itoa(number))
		if err != nil {
			continue // closed meanwhile
		}
		inode := socketInode(link)
		if inode == 0 || seen[inode] {
			continue
		}
		s, err := duplicate(pidfd, number)
		if errors.Is(err, errNotInet) || errors.Is(err, unix.EBADF) {
			continue
		}
		if err != nil {
			return goneAs(err)
		}
		if seen[s.Inode] { // the number came to mean another socket meanwhile
			s.Close()
			continue
		}
		seen[s.Inode] = true
		if !yield(s) {
			return nil
		}
	}
	return nil
}

// socketInode is the inode of a descriptor's link such as "socket:[4711]", 0 if
// it leads to no socket.
func socketInode(link string) uint64 {
	rest, ok := strings.CutPrefix(link, "socket:[")
	if !ok {
		return 0
	}
	inode, _ := strconv.ParseUint(strings.TrimSuffix(rest, "]"), 10, 64)
	return inode
}

// errNotInet says that a descriptor is none of a socket that speaks IP.
var errNotInet = errors.New("not an IP socket")

// duplicate takes a process's descriptor and describes the socket behind it,
// whatever that is by now: what the number meant a moment ago is void.
func duplicate(pidfd, number int) (Socket, error) {
	fd, err := unix.PidfdGetfd(pidfd, number, 0)
	if err != nil {
		return Socket{}, err
	}
	s, err := describe(fd)
	if err != nil {
		unix.Close(fd)
		return Socket{}, err
	}
	return s, nil
}

func describe(fd int) (Socket, error) {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || family != unix.AF_INET && family != unix.AF_INET6 {
		return Socket{}, errNotInet
	}
	s := Socket{FD: fd}
	if s.Protocol, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil {
		return Socket{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Socket{}, err
	}
	s.Inode, s.UID = st.Ino, st.Uid
	local, err := unix.Getsockname(fd)
	if err != nil {
		return Socket{}, err
	}
	s.Local = addrPort(local)
	if remote, err := unix.Getpeername(fd); err == nil {
		s.Remote = addrPort(remote)
	}
	return s, nil
}

func addrPort(address unix.Sockaddr) netip.AddrPort {
	switch a := address.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(a.Addr).Unmap()
		if a.ZoneId != 0 && ip.Is6() {
			ip = ip.WithZone(strconv.FormatUint(uint64(a.ZoneId), 10))
		}
		return netip.AddrPortFrom(ip, uint16(a.Port))
	}
	return netip.AddrPort{}
}
