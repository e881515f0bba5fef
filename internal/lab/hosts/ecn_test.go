package hosts

import "testing"

func TestNetstat(t *testing.T) {
	const text = "TcpExt: SyncookiesSent TW\nTcpExt: 1 2\nIpExt: InNoRoutes InCEPkts ReasmOverlaps\nIpExt: 3 4 5\n"
	for name, want := range map[string]uint64{"InNoRoutes": 3, "InCEPkts": 4} {
		if got, err := netstat([]byte(text), "IpExt:", name); err != nil || got != want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	for _, name := range []string{"TW", "nothing"} {
		if _, err := netstat([]byte(text), "IpExt:", name); err == nil {
			t.Errorf("%s is found", name)
		}
	}
}
