package plan

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A MAC is the address of a device on an Ethernet.
type MAC [6]byte

// ParseMAC reads an address such as 12:34:de:ad:ca:fe.
func ParseMAC(text string) (MAC, error) {
	var m MAC
	parts := strings.Split(strings.ReplaceAll(text, "-", ":"), ":")
	for i, part := range parts {
		b, err := strconv.ParseUint(part, 16, 8)
		if err != nil || len(parts) != len(m) || len(part) > 2 {
			return MAC{}, fmt.Errorf("%q is no MAC address such as 12:34:de:ad:ca:fe", text)
		}
		m[i] = byte(b)
	}
	return m, nil
}

// String returns the usual form.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// MarshalText writes the usual form.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads it.
func (m *MAC) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMAC(string(text))
	return err
}

// A FlowRule has a device put packets to one destination, a MAC or an IP address, into
// one of its RX queues: what ethtool calls an RX network flow classification rule.
type FlowRule struct {
	MAC   MAC        `json:"mac,omitzero"`
	Addr  netip.Addr `json:"addr,omitzero"`
	Queue int        `json:"queue"`
}

// To is the destination in words.
func (r FlowRule) To() string {
	if r.Addr.IsValid() {
		return r.Addr.String()
	}
	return r.MAC.String()
}
