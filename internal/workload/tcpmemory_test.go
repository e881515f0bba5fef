package workload

import (
	"os"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestTCPMemory(t *testing.T) {
	m, err := TCPMemory()
	if err != nil || !m.Known() || m.Low > m.Pressure || m.Pressure > m.Max {
		t.Errorf("%+v, %v", m, err)
	}
}

// Elsewhere than in the host's own network namespace the limits are not shown.
func TestTCPMemoryInNamespace(t *testing.T) {
	testutil.Needs(t, "root")
	testutil.Netns(t)
	if m, err := TCPMemory(); err != nil || m.Known() || m.Presses() || m.Full() {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestParseSockstat(t *testing.T) {
	page := uint64(os.Getpagesize())
	for text, want := range map[string]uint64{
		"sockets: used 11\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 158\nUDP: inuse 0 mem 164\n": 158 * page,
		"TCP: inuse 1 mem -3\n": 0,
	} {
		if got, err := parseSockstat([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "UDP: mem 3\n", "TCP: inuse 1\n", "TCP: mem many\n"} {
		if got, err := parseSockstat([]byte(text)); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}
