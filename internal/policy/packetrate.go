package policy

import "strconv"

// The fewest and the most packets a second that something can be held to. A limit of
// packets is kept as one of bytes is, with each packet counted as a full segment of 1514
// bytes: so these are 121 kbit/s and 97 Gbit/s, within what is computed and simulated.
const (
	MinPPS PacketRate = 10
	MaxPPS PacketRate = 8_000_000
)

// String puts the rate into words: "20000 packets/s".
func (r PacketRate) String() string { return strconv.FormatUint(uint64(r), 10) + " packets/s" }

// parsePPS reads a number of packets a second. The error is a *ValueError.
func parsePPS(s string) (PacketRate, error) {
	n, err := number("pps", s, uint64(MinPPS), uint64(MaxPPS))
	return PacketRate(n), err
}
