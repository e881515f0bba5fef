package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/testutil"
)

// offered is how much the peer of a connection is ready to receive, in bytes of payload.
func offered(t *testing.T, c net.Conn) (window uint32) {
	t.Helper()
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Error(err)
			return
		}
		window = info.Snd_wnd
	}); err != nil {
		t.Fatal(err)
	}
	return window
}

// TestHandshakeOffersLittle: below a limit of what is received a connection is offered ten segments with its handshake, or
// two below a low one, whoever opens it, as what is offered can not be taken back. Others are offered what they would be.
func TestHandshakeOffersLittle(t *testing.T) {
	testutil.Needs(t, "BPF atomics")
	ctx := context.Background()
	b := newBench(t)
	dir, group := b.makeCgroup(t, "held")
	w := worker(t, b.here, dir)
	here := netip.AddrPortFrom(b.link.IPv4.Addr(), 5301)
	if err := w.Receive(ctx, here); err != nil {
		t.Fatal(err)
	}
	var far net.Listener
	b.there.Do(func() { far = listen(t, "") })
	defer far.Close()
	there := netip.AddrPortFrom(b.far.IPv4.Addr(), far.Addr().(*net.TCPAddr).AddrPort().Port())

	accepted := func() uint32 {
		var c net.Conn
		var err error
		b.there.Do(func() { c, err = net.DialTimeout("tcp4", here.String(), 5*time.Second) })
		if err != nil {
			t.Fatal(err)
		}
		return offered(t, c)
	}
	opened := func() uint32 {
		if err := worker(t, b.here, dir).Stuff(ctx, traffic.Where{To: there}, 1, 1); err != nil {
			t.Fatal(err)
		}
		c, err := far.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return offered(t, c)
	}
	for _, c := range []struct {
		promise     string
		least, most uint32
	}{
		{"egress: {max: 100Mbit}", 64000, 1 << 20},
		{"ingress: {max: 100Mbit}", 10 * 1448, 16 << 10}, // in whole powers of two
		{"ingress: {pps: 1000}", 10 * 1448, 16 << 10},
		{"ingress: {max: 64Kbit}", 2 * 1448, 3 * 1448},
		{"egress: {max: 100Mbit}", 64000, 1 << 20},
	} {
		b.apply(t, fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %s}], %s}}\n", b.link.Name, group, c.promise))
		for who, offer := range map[string]func() uint32{"accepts": accepted, "opens": opened} {
			window := offer()
			for range 2 { // a machine that stood still in between
				if window <= c.most {
					break
				}
				window = offer()
			}
			t.Logf("%s: a connection that it %s is offered %d bytes", c.promise, who, window)
			if window < c.least || window > c.most {
				t.Errorf("%s: a connection that it %s is offered %d bytes, want from %d to %d", c.promise, who, window, c.least, c.most)
			}
		}
	}
}
