package traffic

import (
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/testutil"
)

// arrived is how many datagrams have come as far as the sockets of a namespace,
// as its UDP counts those that a filter dropped.
func arrived(ns *testutil.Namespace) uint64 { return ns.UDPCount("InErrors") }

// TestFloodIsCounted compares what the senders count with what arrives on a
// loopback, and what that dropped because a CPU's backlog was full.
func TestFloodIsCounted(t *testing.T) {
	ns := testutil.NewNamespace(t)
	sink, err := OpenSink(ns.Path(), local(9))
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	f, err := StartFlood(Where{Netns: ns.Path(), To: local(9)}, 2, 64)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	sent, err := f.Stop()
	if err != nil || sent == 0 {
		t.Fatalf("%d datagrams were sent, %v", sent, err)
	}
	// The loopback hands over in a softirq, at the latest when the CPU has time.
	came := func() uint64 { return arrived(ns) + dropped(t, ns.Path()) }
	got := came()
	for range 100 {
		if got >= sent {
			break
		}
		time.Sleep(10 * time.Millisecond)
		got = came()
	}
	if got != sent {
		t.Errorf("%d datagrams were sent, %d arrived or were dropped", sent, got)
	}
	if arrived(ns) == 0 {
		t.Error("all were dropped")
	}
}

// dropped is how many packets the loopback of a namespace has dropped.
func dropped(t *testing.T, netns string) (packets uint64) {
	t.Helper()
	err := host.InNetns(netns, func() error {
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			packets = lo.Attrs().Statistics.RxDropped
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packets
}

// A pace is an upper bound on average; on a busy machine it may be less.
func TestFloodKeepsItsPace(t *testing.T) {
	ns := testutil.NewNamespace(t)
	sink, err := OpenSink(ns.Path(), local(9))
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	const sockets, size, pace = 2, 1000, 8_000_000 // 1000 datagrams/s each
	begin := time.Now()
	f, err := StartFlood(Where{Netns: ns.Path(), To: local(9), Pace: pace}, sockets, size)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	sent, err := f.Stop()
	if err != nil || sent == 0 {
		t.Fatalf("%d datagrams were sent, %v", sent, err)
	}
	if most := sockets * (1 + (time.Since(begin)+ahead).Seconds()*pace/8/size); float64(sent) > most {
		t.Errorf("%d datagrams were sent, at most %.0f may be", sent, most)
	}
}

func TestFloodWithoutSink(t *testing.T) {
	ns := testutil.NewNamespace(t)
	f, err := StartFlood(Where{Netns: ns.Path(), To: local(9)}, 1, 64)
	if err != nil {
		t.Fatal(err)
	}
	f.wg.Wait() // its only sender ends by itself
	if _, err := f.Stop(); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody takes it: %v", err)
	}
}
