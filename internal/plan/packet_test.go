package plan

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
)

func TestParsePacket(t *testing.T) {
	a := netip.MustParseAddrPort
	for text, want := range map[string]Packet{
		"tcp 10.1.2.3:5000 > 192.0.2.1:22 dscp 46": {Protocol: 6, Source: a("10.1.2.3:5000"), Dest: a("192.0.2.1:22"), DSCP: 46, Ports: true},
		"UDP [fd00::1]:1 [fd00::2]:65535":          {Protocol: 17, Source: a("[fd00::1]:1"), Dest: a("[fd00::2]:65535"), Ports: true},
		"icmp 10.0.0.1>10.0.0.2":                   {Protocol: 1, Source: a("10.0.0.1:0"), Dest: a("10.0.0.2:0")},
		"6 10.0.0.1:1 > 10.0.0.2:2":                {Protocol: 6, Source: a("10.0.0.1:1"), Dest: a("10.0.0.2:2"), Ports: true},
		"udp 10.0.0.1:1 > 10.0.0.2:2 dscp ef":      {Protocol: 17, Source: a("10.0.0.1:1"), Dest: a("10.0.0.2:2"), DSCP: 46, Ports: true},
		"ospf 10.0.0.1 > 10.0.0.2":                 {Protocol: 89, Source: a("10.0.0.1:0"), Dest: a("10.0.0.2:0")},
		"253 fd00::1 > fd00::2 dscp 0":             {Protocol: 253, Source: a("[fd00::1]:0"), Dest: a("[fd00::2]:0")},
		"sctp [::ffff:10.0.0.1]:1 > 10.0.0.2:2":    {Protocol: 132, Source: a("10.0.0.1:1"), Dest: a("10.0.0.2:2"), Ports: true},
	} {
		if got, err := ParsePacket(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                     "want PROTOCOL SOURCE > DESTINATION",
		"tcp 10.0.0.1:1":                       "want PROTOCOL SOURCE > DESTINATION",
		"tcp 10.0.0.1:1 > 10.0.0.2:2 tos 4":    "want PROTOCOL SOURCE > DESTINATION",
		"tpc 10.0.0.1:1 > 10.0.0.2:2":          `protocol "tpc" is not known (did you mean "tcp"?)`,
		"256 10.0.0.1 > 10.0.0.2":              "protocol 256 is out of range (0 to 255)",
		"tcp 10.0.0.1 > 10.0.0.2:2":            `end "10.0.0.1" is not in the form ADDRESS:PORT`,
		"icmp 10.0.0.1:1 > 10.0.0.2":           `end "10.0.0.1:1" is not an address; this protocol has no ports`,
		"udp 10.0.0.1:1 > [fd00::1]:2":         "one end is IPv4, the other IPv6",
		"tcp 10.0.0.1:1 > 10.0.0.2:2 dscp 64":  "dscp 64 is out of range (0 to 63; as a TOS byte it would be dscp 16)",
		"tcp 10.0.0.1:1 > 10.0.0.2:2 dscp eff": `dscp "eff" is not known (did you mean "ef"?)`,
		"tcp 10.0.0.1:1 > 10.0.0.2:99999":      `end "10.0.0.2:99999"`,
	} {
		if _, err := ParsePacket(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestFrame(t *testing.T) {
	for text, want := range map[string]string{
		"udp 10.0.0.1:258 > 10.0.0.2:772 dscp 46": "000000000000000000000000" + "0800" +
			"45b80028" + "00000000" + "40110000" + "0a000001" + "0a000002" + "01020304" + strings.Repeat("00", 16),
		"tcp [fd00::1]:1 > [fd00::2]:22 dscp 1": "000000000000000000000000" + "86dd" +
			"60400000" + "00140640" + "fd00" + strings.Repeat("00", 13) + "01" + "fd00" + strings.Repeat("00", 13) + "02" + "00010016" + strings.Repeat("00", 16),
	} {
		p, err := ParsePacket(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(p.Frame()); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}
