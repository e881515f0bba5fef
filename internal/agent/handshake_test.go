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
	const segments, most = 10 * 1448, 16 << 10 // in whole powers of two
	for _, c := range []struct {
		promise string
		limited bool
	}{
		{"egress: {max: 100Mbit}", false},
		{"ingress: {max: 100Mbit}", true},
		{"ingress: {pps: 1000}", true},
		{"egress: {max: 100Mbit}", false},
	} {
		b.apply(t, fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %s}], %s}}\n", b.link.Name, group, c.promise))
		for who, window := range map[string]uint32{"accepted": accepted(), "opened": opened()} {
			t.Logf("%s: a connection that it %s is offered %d bytes", c.promise, who, window)
			if c.limited != (window <= most) || window < segments {
				t.Errorf("%s: a connection that it %s is offered %d bytes, ten segments are %d", c.promise, who, window, segments)
			}
		}
	}
	// Two, where more are not to be had within the 220 ms that the limit's bucket holds.
	b.apply(t, fmt.Sprintf("version: 1\nlinks: {%s: {scheduler: none}}\nworkloads: {held: {match: [{cgroup: %s}], ingress: {max: 64Kbit}}}\n", b.link.Name, group))
	for who, window := range map[string]uint32{"accepted": accepted(), "opened": opened()} {
		t.Logf("ingress: {max: 64Kbit}: a connection that it %s is offered %d bytes", who, window)
		if window > 3*1448 || window < 2*1448 {
			t.Errorf("a connection that it %s is offered %d bytes, two segments are %d", who, window, 2*1448)
		}
	}
}
