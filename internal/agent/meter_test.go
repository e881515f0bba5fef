package agent

import (
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// perSecond is how much a count grows in a second, while something is done. The clock is read
// right after the count, both times: that it takes a while does not count, if it always does.
func perSecond(count func() float64, do func()) float64 {
	before, begin := count(), time.Now()
	do()
	after, end := count(), time.Now()
	return (after - before) / end.Sub(begin).Seconds()
}

// sleeping does nothing for a time.
func sleeping(over time.Duration) func() { return func() { time.Sleep(over) } }

// streamed is what open TCP connections of a namespace have received, in bytes of payload, by
// one of their ports. It asks the kernel itself: a command may take a good part of a second on a
// busy machine, and nobody knows when in it what it prints was so.
func streamed(t *testing.T, ns *testutil.Namespace, port func(netlink.SocketID) uint16) map[int]float64 {
	t.Helper()
	bytes := map[int]float64{}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		var sockets []*netlink.InetDiagTCPInfoResp
		var err error
		ns.Do(func() { sockets, err = netlink.SocketDiagTCPInfo(family) })
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sockets {
			if s.TCPInfo != nil && s.InetDiagMsg.State == netlink.TCP_ESTABLISHED {
				bytes[int(port(s.InetDiagMsg.ID))] += float64(s.TCPInfo.Bytes_received)
			}
		}
	}
	return bytes
}

func localPort(id netlink.SocketID) uint16  { return id.SourcePort }
func remotePort(id netlink.SocketID) uint16 { return id.DestinationPort }
