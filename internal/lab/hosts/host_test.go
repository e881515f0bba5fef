package hosts

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func newTestHost(t *testing.T, n *Net, name string) *Host {
	t.Helper()
	testutil.Needs(t, "root")
	h, err := n.Host(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func testNet(t *testing.T) *Net {
	t.Helper()
	n := &Net{}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func TestSysctlStaysInside(t *testing.T) {
	const path = "/proc/sys/net/ipv4/ip_forward"
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h := newTestHost(t, testNet(t), "router")
	for _, value := range []string{"0", "1"} {
		if err := h.sysctl("net/ipv4/ip_forward", value); err != nil {
			t.Fatal(err)
		}
		var inside []byte
		err := h.do(func() (err error) {
			inside, err = os.ReadFile(path)
			return err
		})
		if err != nil || strings.TrimSpace(string(inside)) != value {
			t.Errorf("inside it is %q (%v), want %s", inside, err, value)
		}
		if after, _ := os.ReadFile(path); string(after) != string(before) {
			t.Fatalf("outside it was %q and is %q", before, after)
		}
	}
	err = h.sysctl("net/ipv4/no_such_thing", "1")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "of host router") {
		t.Errorf("got %v", err)
	}
}

// TestNetnsLeadsOthersInside asks another program.
func TestNetnsLeadsOthersInside(t *testing.T) {
	h := newTestHost(t, testNet(t), "lonely")
	out := testutil.Output(t, "nsenter", "--net="+h.Netns(), testutil.Tool(t, "ip"), "-br", "link")
	if lines := strings.Count(out, "\n"); !strings.HasPrefix(out, "lo ") || strings.Contains(out, "eth0") {
		t.Errorf("%d devices:\n%s", lines, out)
	}
}

func TestDoReturnsTheError(t *testing.T) {
	h := newTestHost(t, testNet(t), "x")
	want := errors.New("no")
	if err := h.do(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}
