package traffic

import (
	"net/netip"
	"os"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == WorkerArgument {
		os.Exit(WorkerMain(os.Stdin, os.Stdout, os.Stderr))
	}
	testutil.Leaks(m)
}

// local is an address on the loopback of a namespace.
func local(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
}

func serve(t *testing.T, netns string, port uint16) *Server {
	t.Helper()
	s, err := Serve(netns, local(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
