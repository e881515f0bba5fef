package hosts

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ECN lets the TCP of the host ask for explicit marks of congestion (RFC 3168), or do so only where its peer asks, as
// Linux has it by itself.
func (h *Host) ECN(ask bool) error {
	value := "2"
	if ask {
		value = "1"
	}
	return h.sysctl("net/ipv4/tcp_ecn", value)
}

// Marked is how many packets have arrived at the host with a mark of congestion.
func (h *Host) Marked() (packets uint64, err error) {
	var text []byte
	err = h.do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/netstat")
		return err
	})
	if err == nil {
		packets, err = netstat(text, "IpExt:", "InCEPkts")
	}
	if err != nil {
		return 0, fmt.Errorf("count marks at host %s: %w", h.Name, err)
	}
	return packets, nil
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
