package traffic

import (
	"context"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// TestDialSetsTheSocketUp reads back what the kernel made of the options.
func TestDialSetsTheSocketUp(t *testing.T) {
	ns := testutil.NewNamespace(t)
	serve(t, ns.Path(), 22)
	conn, err := Where{Netns: ns.Path(), To: local(22), Congestion: "reno", Pace: 80_000_000}.dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = onSocket(raw, func(fd int) error {
		if got, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil || got != "reno" {
			t.Errorf("congestion control %q, %v", got, err)
		}
		if got, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE); err != nil || got != 10_000_000 {
			t.Errorf("pacing rate %d byte/s, %v", got, err)
		}
		// The kernel doubles what it is asked for.
		if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err != nil || got != 2*buffer {
			t.Errorf("send buffer %d, %v", got, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNamespacesAreApart serves one port in two namespaces and outside.
func TestNamespacesAreApart(t *testing.T) {
	a, b := testutil.NewNamespace(t), testutil.NewNamespace(t)
	first, second := serve(t, a.Path(), 5201), serve(t, b.Path(), 5201)
	if _, err := Copy(context.Background(), Where{Netns: b.Path(), To: local(5201)}, 1000); err != nil {
		t.Fatal(err)
	}
	if first.Bytes() != 0 || second.Bytes() < 1000 {
		t.Errorf("%d and %d bytes", first.Bytes(), second.Bytes())
	}
	if conn, err := net.Dial("tcp", local(5201).String()); err == nil {
		conn.Close()
		t.Error("a server in a namespace answers outside")
	}
	_, err := Serve(a.Path(), local(5201))
	if err == nil || !strings.Contains(err.Error(), "listen at 127.0.0.1:5201") {
		t.Errorf("a port twice: %v", err)
	}
}

func TestUnknownCongestionControl(t *testing.T) {
	ns := testutil.NewNamespace(t)
	serve(t, ns.Path(), 22)
	_, err := Copy(context.Background(), Where{Netns: ns.Path(), To: local(22), Congestion: "nonesuch"}, 1)
	if err == nil || !strings.Contains(err.Error(), "nonesuch") {
		t.Errorf("got %v", err)
	}
}
