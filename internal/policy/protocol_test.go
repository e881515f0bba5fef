package policy

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestProtocol(t *testing.T) {
	for number := int16(0); number < 256; number++ {
		for _, text := range []string{ProtocolName(number), strconv.Itoa(int(number))} {
			if got, err := ParseProtocol(text); err != nil || got != number {
				t.Errorf("ParseProtocol(%q) = %d, %v", text, got, err)
			}
		}
	}
	for _, text := range []string{"", "TCP", "quic", "256", "-1", "06", "6.0", "+6"} {
		if got, err := ParseProtocol(text); err == nil {
			t.Errorf("ParseProtocol(%q) = %d", text, got)
		}
	}
	for name, want := range map[string]bool{"tcp": true, "udp": true, "sctp": true, "dccp": true, "udplite": true, "icmp": false, "gre": false, "esp": false} {
		number, err := ParseProtocol(name)
		if err != nil || HasPorts(number) != want {
			t.Errorf("%s has ports: %v, %v", name, !want, err)
		}
	}
}

// The system's own table is the witness for the numbers.
func TestProtocolNumbersOfSystem(t *testing.T) {
	testutil.Needs(t, "/etc/protocols")
	text, err := os.ReadFile("/etc/protocols")
	if err != nil {
		t.Fatal(err)
	}
	alias := map[string]string{"ipv6-icmp": "icmpv6", "ipencap": "ipip", "ospfigp": "ospf"}
	seen := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.HasPrefix(line, "#") {
			continue
		}
		name := strings.ToLower(fields[0])
		if own, ok := alias[name]; ok {
			name = own
		}
		if number, err := ParseProtocol(name); err == nil && !isNumber(name) {
			seen++
			if strconv.Itoa(int(number)) != fields[1] && name != "ipip" { // there, ipip is 94
				t.Errorf("%s is %d here and %s in /etc/protocols", name, number, fields[1])
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d names of /etc/protocols are known", seen)
	}
}
