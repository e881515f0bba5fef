package host

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// dnsPort is where name servers listen.
const dnsPort = 53

// A DNSQuestion is one that was sent to a name server from inside of a VRF.
type DNSQuestion struct{ fd int }

// dnsQuery asks for the name servers of the root, which every server answers somehow: that is
// all that is to be found out.
var dnsQuery = []byte{'w', 'r', 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1}

// AskDNS sends a question by a device of the calling thread's network namespace, as sockets do
// that are bound to it. The caller calls Answered, from wherever.
func AskDNS(device string, server netip.Addr) (DNSQuestion, error) {
	var address unix.Sockaddr
	domain := unix.AF_INET
	if server = server.Unmap(); server.Is4() {
		address = &unix.SockaddrInet4{Port: dnsPort, Addr: server.As4()}
	} else {
		domain, address = unix.AF_INET6, &unix.SockaddrInet6{Port: dnsPort, Addr: server.As16()}
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return DNSQuestion{-1}, fmt.Errorf("make socket: %w", err)
	}
	err = unix.BindToDevice(fd, device)
	if err == nil {
		err = unix.Connect(fd, address)
	}
	if err == nil {
		_, err = unix.Write(fd, dnsQuery)
	}
	if err != nil {
		unix.Close(fd)
		return DNSQuestion{-1}, fmt.Errorf("ask %s: %w", server, err)
	}
	return DNSQuestion{fd}, nil
}

// Answered waits for an answer, asks once more after half of the time, and closes the question.
func (q DNSQuestion) Answered(patience time.Duration) error {
	defer unix.Close(q.fd)
	half := unix.NsecToTimeval(int64(patience / 2))
	if err := unix.SetsockoptTimeval(q.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &half); err != nil {
		return fmt.Errorf("wait for an answer: %w", err)
	}
	answer := make([]byte, 512)
	for range 2 {
		n, err := unix.Read(q.fd, answer)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			_, _ = unix.Write(q.fd, dnsQuery) // what is wrong with that, the next read tells
			continue
		case err != nil:
			return err
		case n >= 12 && answer[0] == dnsQuery[0] && answer[1] == dnsQuery[1]:
			return nil
		}
	}
	return unix.ETIMEDOUT
}
