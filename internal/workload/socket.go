package workload

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A Socket is an IPv4 or IPv6 socket of a running process, reached through a
// duplicate of the process's file descriptor. While the duplicate is open the
// connection outlives a close by its owner, so it should be short.
type Socket struct {
	FD       int // ours; closed by Close
	Inode    uint64
	Family   int            // unix.AF_INET or unix.AF_INET6
	Type     int            // unix.SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, …
	Protocol int            // unix.IPPROTO_TCP, IPPROTO_UDP, IPPROTO_MPTCP, …
	Local    netip.AddrPort // IPv4-mapped addresses as IPv4
	Remote   netip.AddrPort // the zero AddrPort if not connected
}

// Close closes the duplicate; the owner's socket stays.
func (s Socket) Close() error { return unix.Close(s.FD) }

// Sockets yields the IPv4 and IPv6 sockets of a process, each once however many
// descriptors it has. The caller closes each socket that it gets. An error ends
// the sequence; it wraps ErrGone if the process has exited, and
// fs.ErrPermission if we may not look. Sockets of threads that do not share
// their process's descriptors are not seen, and those that the process passed
// on and closed belong to whom it passed them to.
func Sockets(p Process) iter.Seq2[Socket, error] {
	return func(yield func(Socket, error) bool) {
		if err := eachSocket(p, func(s Socket) bool { return yield(s, nil) }); err != nil {
			yield(Socket{FD: -1}, fmt.Errorf("read sockets of process %d: %w", p.PID, err))
		}
	}
}

func eachSocket(p Process, yield func(Socket) bool) error {
	pidfd, err := p.OpenPidfd()
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
		inode := inodeOf(link, "socket:[")
		if inode == 0 || seen[inode] {
			continue
		}
		seen[inode] = true
		s, err := duplicate(pidfd, number)
		if errors.Is(err, errNotInet) || errors.Is(err, unix.EBADF) {
			continue
		}
		if err != nil {
			return goneAs(err)
		}
		if !yield(s) {
			return nil
		}
	}
	return nil
}

// descriptors lists the file descriptors of a process.
func (d procDir) descriptors() ([]int, error) {
	fd, err := unix.Openat(int(d), "fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, goneAs(err)
	}
	file := os.NewFile(uintptr(fd), "fd")
	defer file.Close()
	names, err := file.Readdirnames(-1)
	if err != nil {
		return nil, goneAs(err)
	}
	numbers := make([]int, 0, len(names))
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
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
	s := Socket{FD: fd, Family: family}
	if s.Type, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return Socket{}, err
	}
	if s.Protocol, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil {
		return Socket{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Socket{}, err
	}
	s.Inode = st.Ino
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
