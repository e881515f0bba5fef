package lab

import (
	"fmt"
	"net/netip"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
)

// plug names one end of a wire.
func plug(host *hosts.Host, device string, addresses ...string) hosts.Plug {
	p := hosts.Plug{Host: host, Device: device}
	for _, address := range addresses {
		p.Addresses = append(p.Addresses, netip.MustParsePrefix(address))
	}
	return p
}

// pair makes a sender and a receiver with a wire between them, whose addresses have a
// number of the lab's own.
func (s *session) pair(number int) (line, far hosts.Plug, err error) {
	sender, err := s.net.Host("sender")
	if err != nil {
		return line, far, err
	}
	receiver, err := s.net.Host("receiver")
	if err != nil {
		return line, far, err
	}
	end := func(on *hosts.Host, n int) hosts.Plug {
		return plug(on, "line", fmt.Sprintf("10.99.%d.%d/24", number, n), fmt.Sprintf("fd99:%d::%d/64", number, n))
	}
	line, far = end(sender, 1), end(receiver, 2)
	return line, far, hosts.Wire(line, far, hosts.Segments(uint64(s.Rate)))
}

// at is a port at the far end of a wire, by IPv4.
func (s *session) at(far hosts.Plug, port int) traffic.Where {
	return traffic.Where{
		To:         netip.AddrPortFrom(far.Addresses[0].Addr(), uint16(port)),
		Congestion: s.result.Environment.Congestion,
	}
}
