package testutil

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// UDPCount is a counter of the namespace's UDP over IPv4, by its name in /proc/net/snmp: InErrors, what a filter
// dropped included, or RcvbufErrors, for which a socket had no room.
func (n *Namespace) UDPCount(name string) uint64 {
	n.t.Helper()
	var text []byte
	var err error
	n.Do(func() { text, err = os.ReadFile("/proc/thread-self/net/snmp") })
	if err != nil {
		n.t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if fields[0] != "Udp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		if i := slices.Index(names, name); i > 0 {
			count, err := strconv.ParseUint(fields[i], 10, 64)
			if err != nil {
				n.t.Fatal(err)
			}
			return count
		}
	}
	n.t.Fatalf("no counter %s of UDP in %s", name, text)
	return 0
}
