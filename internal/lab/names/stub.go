package names

import (
	"net"
	"net/netip"
	"time"

	"github.com/weir-net/weir/internal/host"
)

// A Stub hands on what it is asked, as systemd-resolved does: it listens bound to a device, and
// asks its server by sockets that are bound to nothing, so outside of any VRF.
type Stub struct {
	*port
	netns  string
	server netip.AddrPort
}

// ServeStub starts a stub in a namespace. Close ends it.
func ServeStub(netns string, at netip.AddrPort, device string, server netip.AddrPort) (*Stub, error) {
	s := &Stub{netns: netns, server: server}
	var err error
	s.port, err = open(netns, at, device, s.handOn)
	return s, err
}

// handOn asks the server the way that the stub was asked. Where there is no answer, the stub
// gives none.
func (s *Stub) handOn(network string, question []byte) []byte {
	dialer := net.Dialer{Timeout: patience, KeepAlive: -1}
	dialer.SetMultipathTCP(false)
	var conn net.Conn
	err := host.InNetns(s.netns, func() (err error) {
		conn, err = dialer.Dial(network, s.server.String())
		return err
	})
	if err != nil {
		return nil
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if network == "tcp" {
		if writeMessage(conn, question) != nil {
			return nil
		}
		answer, err := readMessage(conn)
		if err != nil {
			return nil
		}
		return answer
	}
	if _, err := conn.Write(question); err != nil {
		return nil
	}
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	if err != nil {
		return nil
	}
	return answer[:n]
}
