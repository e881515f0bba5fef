package hosts

// ECN lets the TCP of the host ask for explicit marks of congestion (RFC 3168), or do so only where its peer asks, as
// Linux has it by itself.
func (h *Host) ECN(ask bool) error {
	value := "2"
	if ask {
		value = "1"
	}
	return h.sysctl("net/ipv4/tcp_ecn", value)
}
