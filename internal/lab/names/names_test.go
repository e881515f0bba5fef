package names

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Leaks(m) }

// ask has Go's own resolver look a name up.
func ask(t *testing.T, ns *testutil.Namespace, at netip.AddrPort, name string) (found []netip.Addr, networks []string) {
	t.Helper()
	resolver := net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
		networks = append(networks, network)
		ns.Do(func() { conn, err = (&net.Dialer{}).DialContext(ctx, network, at.String()) })
		return conn, err
	}}
	found, err := resolver.LookupNetIP(context.Background(), "ip4", name)
	if err != nil {
		t.Error(err)
	}
	return found, networks
}

// A name has the server's address, also by way of a stub that is bound to lo, and a long one
// over a connection.
func TestServe(t *testing.T) {
	testutil.Needs(t, "root")
	ns := testutil.NewNamespace(t)
	own, answer := netip.MustParseAddrPort("127.0.0.7:53"), netip.MustParseAddr("192.0.2.7")
	server, err := Serve(ns.Path(), own, answer)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	stub := netip.MustParseAddrPort("127.0.0.53:53")
	s, err := ServeStub(ns.Path(), stub, "lo", own)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	asked := uint64(0)
	for _, at := range []netip.AddrPort{own, stub} {
		for name, by := range map[string]int{"www.weir.test.": 1, Long + "weir.test.": 2} {
			found, networks := ask(t, ns, at, name)
			if len(found) != 1 || found[0] != answer || len(networks) != by || networks[by-1] != []string{"udp", "tcp"}[by-1] {
				t.Errorf("%s at %s: %v by %v", name, at, found, networks)
			}
			asked += uint64(by)
		}
	}
	if got := server.Questions(); got != asked {
		t.Errorf("%d questions, want %d", got, asked)
	}
	if answer := server.reply("udp", []byte("nonsense")); answer != nil {
		t.Errorf("it answers nonsense by %q", answer)
	}
	if _, err := Serve(ns.Path(), own, answer); err == nil {
		t.Error("two listen at one address")
	}
}
