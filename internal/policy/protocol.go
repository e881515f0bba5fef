package policy

import (
	"slices"
	"strconv"
)

// protocol is an IP protocol that has a name in a policy.
type protocol struct {
	name   string
	number int16
	ports  bool // its header starts with a source and a destination port
}

// protocols are sorted by name. Names are IANA's, as in /etc/protocols.
var protocols = [...]protocol{
	{"ah", 51, false}, {"dccp", 33, true}, {"eigrp", 88, false}, {"esp", 50, false},
	{"gre", 47, false}, {"icmp", 1, false}, {"icmpv6", 58, false}, {"igmp", 2, false},
	{"ipip", 4, false}, {"l2tp", 115, false}, {"ospf", 89, false}, {"pim", 103, false},
	{"sctp", 132, true}, {"tcp", 6, true}, {"udp", 17, true}, {"udplite", 136, true},
	{"vrrp", 112, false},
}

// ParseProtocol reads an IP protocol, by name ("tcp") or number ("6"). The error
// is a *ValueError.
func ParseProtocol(s string) (int16, error) {
	if isNumber(s) {
		n, err := number("protocol", s, 0, 255)
		return int16(n), err
	}
	for _, p := range protocols {
		if p.name == s {
			return p.number, nil
		}
	}
	help := DidYouMean(s, protocolNames(), "a number from 0 to 255 names any protocol")
	return -1, &ValueError{"protocol " + quote(s) + " is not known", help}
}

func protocolNames() []string {
	names := make([]string, len(protocols))
	for i, p := range protocols {
		names[i] = p.name
	}
	return names
}

// ProtocolName returns the name of an IP protocol, or its number where it has
// no name in a policy.
func ProtocolName(number int16) string {
	if i := slices.IndexFunc(protocols[:], func(p protocol) bool { return p.number == number }); i >= 0 {
		return protocols[i].name
	}
	return strconv.Itoa(int(number))
}

// HasPorts reports that the headers of an IP protocol have ports.
func HasPorts(number int16) bool {
	return slices.ContainsFunc(protocols[:], func(p protocol) bool { return p.number == number && p.ports })
}

// isNumber reports that s starts like a number, not like a name.
func isNumber(s string) bool {
	return s != "" && (s[0] >= '0' && s[0] <= '9' || s[0] == '-' || s[0] == '+')
}
