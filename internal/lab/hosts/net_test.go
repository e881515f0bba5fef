package hosts

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// TestRouter sends a byte from a client through a router to a server and back,
// over IPv4 and IPv6.
func TestRouter(t *testing.T) {
	n := testNet(t)
	client, router, server := newTestHost(t, n, "client"), newTestHost(t, n, "router"), newTestHost(t, n, "server")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(Wire(Plug{client, "eth0", prefixes("10.1.0.2/24", "fd01::2/64")}, Plug{router, "left", prefixes("10.1.0.1/24", "fd01::1/64")}, 1))
	must(Wire(Plug{router, "right", prefixes("10.2.0.1/24", "fd02::1/64")}, Plug{server, "eth0", prefixes("10.2.0.2/24", "fd02::2/64")}, 1))
	must(router.Forward())
	must(client.Route(netip.MustParsePrefix("10.2.0.0/24"), netip.MustParseAddr("10.1.0.1")))
	must(server.Route(netip.MustParsePrefix("10.1.0.0/24"), netip.MustParseAddr("10.2.0.1")))
	must(client.Route(netip.MustParsePrefix("fd02::/64"), netip.MustParseAddr("fd01::1")))
	must(server.Route(netip.MustParsePrefix("fd01::/64"), netip.MustParseAddr("fd02::1")))
	for _, address := range []string{"10.2.0.2:7", "[fd02::2]:7"} {
		if err := through(client, server, address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func through(client, server *Host, address string) error {
	var listener net.Listener
	err := server.do(func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
			conn.Close()
		}
	}()
	defer func() { listener.Close(); <-done }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var conn net.Conn
	err = client.do(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", address)
		return err
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	data := []byte{7}
	if _, err := conn.Write(data); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, data)
	return err
}

func TestWireLimitsSegments(t *testing.T) {
	n := testNet(t)
	a, b := newTestHost(t, n, "a"), newTestHost(t, n, "b")
	if err := Wire(Plug{Host: a, Device: "one"}, Plug{Host: b, Device: "two"}, 3); err != nil {
		t.Fatal(err)
	}
	for host, device := range map[*Host]string{a: "one", b: "two"} {
		out := testutil.Output(t, "nsenter", "--net="+host.Netns(), testutil.Tool(t, "ip"), "-d", "link", "show", "dev", device)
		if !strings.Contains(out, "gso_max_segs 3 ") || !strings.Contains(out, ",UP,LOWER_UP") {
			t.Errorf("%s", out)
		}
	}
	err := Wire(Plug{Host: a, Device: "one"}, Plug{Host: b, Device: "three"}, 3)
	if err == nil || !strings.Contains(err.Error(), "wire a:one to b:three") {
		t.Errorf("a device twice: %v", err)
	}
}

func TestSegments(t *testing.T) {
	for rate, want := range map[uint64]int{1e6: 1, 100e6: 1, 1e9: 8, 100e9: 40} {
		if got := Segments(rate); got != want {
			t.Errorf("Segments(%d) = %d, want %d", rate, got, want)
		}
	}
}

// TestSetMTU: a wire as wide as loopback, and what no wire is.
func TestSetMTU(t *testing.T) {
	n := testNet(t)
	a := Plug{newTestHost(t, n, "a"), "wide", prefixes("10.1.0.1/24")}
	b := Plug{newTestHost(t, n, "b"), "wide", prefixes("10.1.0.2/24")}
	if err := Wire(a, b, 1); err != nil {
		t.Fatal(err)
	}
	if err := a.SetMTU(65535); err != nil {
		t.Fatal(err)
	}
	if link, err := a.link(); err != nil || link.Attrs().MTU != 65535 {
		t.Errorf("%+v, %v", link, err)
	}
	if err := a.SetMTU(1 << 20); err == nil || !strings.Contains(err.Error(), "set MTU of a:wide: ") {
		t.Errorf("a megabyte: %v", err)
	}
}
