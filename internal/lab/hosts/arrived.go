package hosts

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Marked is how many packets of IPv4 have arrived at the host with a mark of congestion.
func (h *Host) Marked() (packets uint64, err error) {
	if packets, err = h.arrived(codepoints[3:]); err != nil {
		return 0, fmt.Errorf("count marks at host %s: %w", h.Name, err)
	}
	return packets, nil
}

// Arrived is how many packets of IPv4 have arrived at the host as a real line would have carried them: a device counts
// one where the kernel hands over many segments in one piece.
func (h *Host) Arrived() (packets uint64, err error) {
	if packets, err = h.arrived(codepoints[:]); err != nil {
		return 0, fmt.Errorf("count packets at host %s: %w", h.Name, err)
	}
	return packets, nil
}

// codepoints are the kernel's counters of packets by what they say of congestion. None else of IP's counts segments.
var codepoints = [...]string{"InNoECTPkts", "InECT1Pkts", "InECT0Pkts", "InCEPkts"}

func (h *Host) arrived(counters []string) (packets uint64, err error) {
	var text []byte
	err = h.do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/netstat")
		return err
	})
	for _, name := range counters {
		if err == nil {
			var n uint64
			n, err = netstat(text, "IpExt:", name)
			packets += n
		}
	}
	return packets, err
}

// netstat finds a counter in the kernel's table of such: of each protocol a line of names, and one of numbers.
func netstat(text []byte, protocol, name string) (uint64, error) {
	var names [][]byte
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) == 0 || string(fields[0]) != protocol {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i := range min(len(names), len(fields)) {
			if string(names[i]) == name {
				return strconv.ParseUint(string(fields[i]), 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("this kernel has no counter %s%s", protocol, name)
}
