package lab

import (
	"net/netip"

	"github.com/weir-net/weir/internal/lab/hosts"
)

// plug names one end of a wire.
func plug(host *hosts.Host, device string, addresses ...string) hosts.Plug {
	p := hosts.Plug{Host: host, Device: device}
	for _, address := range addresses {
		p.Addresses = append(p.Addresses, netip.MustParsePrefix(address))
	}
	return p
}
