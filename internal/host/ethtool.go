package host

import (
	"math"

	"github.com/safchain/ethtool"

	"github.com/weir-net/weir/internal/policy"
)

// inventive are the drivers that report a constant where there is no wire: tun
// says 10 Mbit/s, veth 10 Gbit/s. To shape by it would slow a tunnel to a crawl.
var inventive = map[string]bool{"tun": true, "veth": true}

// A prober asks drivers through one socket, which belongs to the namespace it
// was opened in. What a driver does not answer is unknown, which is no error:
// lo answers nothing at all.
type prober struct{ *ethtool.Ethtool }

func (p prober) driver(device string) string {
	name, err := p.DriverName(device)
	if err != nil {
		return ""
	}
	return name
}

// speed returns the speed that the driver reports, 0 if it knows none.
//
// The old request is asked for on purpose: the library's GetLinkSettings does
// not shake hands about the length of the masks and writes a warning to
// standard output. The kernel answers the old one from the same source.
func (p prober) speed(device, driver string) policy.Rate {
	if inventive[driver] {
		return 0
	}
	var settings ethtool.EthtoolCmd
	mbits, err := p.CmdGet(&settings, device)
	if err != nil || mbits == math.MaxUint32 {
		return 0
	}
	return policy.Rate(mbits) * 1_000_000
}

// queues returns the number of TX queues in use, 0 if the driver does not say.
func (p prober) queues(device string) int {
	channels, err := p.GetChannels(device)
	if err != nil {
		return 0
	}
	return int(channels.TxCount + channels.CombinedCount)
}
