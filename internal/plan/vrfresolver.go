package plan

import (
	"net/netip"
	"slices"
	"strings"
)

// VRFLookups is how what runs in a VRF looks names up.
type VRFLookups struct {
	File     string       `json:"file"`     // the resolv.conf that is read there
	Own      bool         `json:"own"`      // it is one for this VRF alone, which weir vrf exec puts in place
	Servers  []VRFServer  `json:"servers"`  // in the order in which they are asked
	Upstream []netip.Addr `json:"upstream"` // whom systemd-resolved asks, by its own file
	Varlink  bool         `json:"varlink"`  // nsswitch.conf has systemd-resolved asked by a socket of its own, before any server
}

// A VRFServer is a name server as it is seen from inside of a VRF.
type VRFServer struct {
	Address  netip.Addr `json:"address"`
	Answers  bool       `json:"answers"`
	Why      string     `json:"why,omitempty"`      // it does not answer
	Listener string     `json:"listener,omitempty"` // the process of this namespace that listens at its address
	Device   string     `json:"device,omitempty"`   // which the listener's socket is bound to
}

// MaxServers is how many name servers the C library asks.
const MaxServers = 3

// ParseResolvConf returns the name servers of a resolv.conf, in order, and all else that it says
// but for comments. What the C library passes over is passed over.
func ParseResolvConf(text string) (servers []netip.Addr, rest []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		fields := strings.Fields(line)
		if fields[0] != "nameserver" {
			rest = append(rest, line)
			continue
		}
		if len(fields) < 2 {
			continue
		}
		if a, err := netip.ParseAddr(fields[1]); err == nil && !slices.Contains(servers, a) {
			servers = append(servers, a)
		}
	}
	return servers, rest
}

// resolvConfMark begins a resolv.conf of Weir's.
const resolvConfMark = "# Made by weir vrf doctor --fix. weir vrf doctor --undo removes it."

// ResolvConf is a resolv.conf for a VRF: its servers, and what else that of the host says.
func ResolvConf(servers []netip.Addr, rest []string) string {
	lines := []string{resolvConfMark}
	for _, s := range servers {
		lines = append(lines, "nameserver "+s.String())
	}
	for _, line := range rest {
		// trust-ad is said of the stub on this host, not of servers on the network.
		words := slices.DeleteFunc(strings.Fields(line), func(w string) bool { return w == "trust-ad" })
		if len(words) > 1 {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// MadeResolvConf reports whether the text is one of [ResolvConf].
func MadeResolvConf(text string) bool { return strings.HasPrefix(text, resolvConfMark) }

// AsksVarlink reports whether nsswitch.conf has host names asked of systemd-resolved before, or
// in place of, the servers of resolv.conf.
func AsksVarlink(nsswitch string) bool {
	for line := range strings.Lines(nsswitch) {
		if sources, ok := strings.CutPrefix(strings.TrimSpace(line), "hosts:"); ok {
			words := strings.Fields(sources)
			resolve, dns := slices.Index(words, "resolve"), slices.Index(words, "dns")
			return resolve >= 0 && (dns < 0 || resolve < dns)
		}
	}
	return false
}
