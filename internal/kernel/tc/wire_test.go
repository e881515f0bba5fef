package tc

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

const sinkPort = 9999

// sendUDP sends a datagram count times through the link to the sink behind it,
// with a socket priority, which HTB also takes as a class id. It has to be called
// in the link's namespace.
func sendUDP(t *testing.T, link testutil.End, priority uint32, count int, datagram []byte) {
	t.Helper()
	const buffer = 16 << 20 // what waits in a qdisc does not keep the sender waiting
	d := net.Dialer{Control: func(_, _ string, rc syscall.RawConn) error {
		var set error
		err := rc.Control(func(fd uintptr) {
			set = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, int(priority)),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer))
		})
		return errors.Join(err, set)
	}}
	c, err := d.Dial("udp4", netip.AddrPortFrom(link.IPv4.Addr().Next(), sinkPort).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range count {
		if _, err := c.Write(datagram); err != nil {
			t.Fatalf("send: %v", err)
		}
	}
}

// wire joins two namespaces by an addressed veth pair, enters the first and
// opens a sink in the second. Only the test sends on it.
func wire(t *testing.T, queues int) (link testutil.End, sink *net.UDPConn) {
	t.Helper()
	ns := testutil.NewNamespace(t)
	link, far := testutil.Veth(t, ns, testutil.NewNamespace(t), testutil.VethOptions{Queues: queues})
	ns.Enter(t)
	var device netlink.Link
	var err error
	far.NS.Do(func() {
		if sink, err = listenUDP(far); err == nil {
			device, err = netlink.LinkByIndex(far.Index)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sink.Close() })
	silence(t, link, far, device.Attrs().HardwareAddr)
	return link, sink
}

// listenUDP opens a sink that holds whatever a queue does, and knows when each
// packet came.
func listenUDP(far testutil.End) (*net.UDPConn, error) {
	sink, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(far.IPv4.Addr(), sinkPort)))
	if err != nil {
		return nil, err
	}
	raw, err := sink.SyscallConn()
	if err != nil {
		return nil, err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
	})
	return sink, errors.Join(err, set)
}

// silence keeps the kernel from sending on a link by itself: there is no
// neighbour to discover, and no IPv6.
func silence(t *testing.T, link, far testutil.End, mac net.HardwareAddr) {
	t.Helper()
	err := netlink.NeighSet(&netlink.Neigh{LinkIndex: link.Index, IP: far.IPv4.Addr().AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT})
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile("/proc/sys/net/ipv6/conf/"+link.Name+"/disable_ipv6", []byte("1"), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func mustCount(t *testing.T, link testutil.End) []ClassCounters {
	t.Helper()
	c, err := Counters(link.Index)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustShares(t *testing.T, link testutil.End) []ShareCounters {
	t.Helper()
	s, err := Shares(link.Index)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// atRest waits until nothing waits in the queue, and gives its counters then.
func atRest(t *testing.T, link testutil.End) []ClassCounters {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		c := mustCount(t, link)
		if !slices.ContainsFunc(c, func(c ClassCounters) bool { return c.QueueLen > 0 }) &&
			!slices.ContainsFunc(mustShares(t, link), func(s ShareCounters) bool { return s.QueueLen > 0 }) {
			return c
		}
	}
	t.Fatal("the queue does not come to rest")
	return nil
}
