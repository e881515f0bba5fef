package agent

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/testutil"
)

// TestBurst floods a limit for a second with some twenty megabytes of datagrams, of which it lets
// through next to nothing meanwhile: what gets through is what may pass at once, out of
// the workload and into it. How much that is, the kernel of the receiver counts: iperf3 would
// say something over TCP as it begins, which is one more flow below the limit.
func TestBurst(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	const told, slow = 512 << 10, 128 << 10 // bytes; slow is 4 s of the limit
	port := uint16(5200)
	for _, c := range []struct {
		burst     string
		direction string
		at, most  float64
	}{
		{"", "egress", 0, slow},
		{", burst: 512KiB", "egress", told, told + slow},
		{"", "ingress", 0, slow},
		{", burst: 512KiB", "ingress", told, told + slow},
	} {
		port++
		links := fmt.Sprintf("links:\n  %s: {scheduler: none}\n", b.link.Name)
		b.apply(t, fmt.Sprintf("version: 1\n%sworkloads:\n  held: {match: [{cgroup: %s}], %s: {max: 256Kbit%s}}\n", links, group, c.direction, c.burst))
		sent, passed := 0.0, 0.0
		if c.direction == "egress" {
			sent, passed = flood(t, b.here, b.there, dir, "", netip.AddrPortFrom(b.far.IPv4.Addr(), port))
		} else {
			sent, passed = flood(t, b.there, b.here, "", dir, netip.AddrPortFrom(b.link.IPv4.Addr(), port))
		}
		t.Logf("%s%s: of %.0f bytes %.0f, on the wire", c.direction, c.burst, sent, passed)
		if sent < 10*told || passed < c.at || passed > c.most {
			t.Errorf("%s%s: of %.0f bytes %.0f passed at once, want %.0f to %.0f", c.direction, c.burst, sent, passed, c.at, c.most)
		}
	}
}

// flood has a process in one cgroup send 200 Mbit/s of datagrams for a second to one in another, and returns how many
// bytes of the wire it sent, and how many came: those that the receiver read, and those for which its socket had no room.
func flood(t *testing.T, from, to *testutil.Namespace, sends, receives string, at netip.AddrPort) (sent, came float64) {
	t.Helper()
	receiver, sender := worker(t, to, receives), worker(t, from, sends)
	if err := receiver.Receive(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	count := func() uint64 { return to.UDPCount("InDatagrams") + to.UDPCount("RcvbufErrors") }
	before := count()
	if err := sender.Flood(t.Context(), traffic.Where{To: at, Pace: 200e6}, 1, 1400); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	n, err := sender.Stop(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return float64(n) * 1400 * datagramWire, float64(count()-before) * 1400 * datagramWire
}
