package hosts

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

func leafless(limit func(Plug, uint64) error) func(Plug, uint64) (Leaf, error) {
	return func(p Plug, rate uint64) (Leaf, error) { return "", limit(p, rate) }
}

// TestLimitAsTcSeesIt puts each limit on a device and takes it off again. A kernel
// without a means has to say which, and nothing of it may be left.
func TestLimitAsTcSeesIt(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit func(Plug, uint64) (Leaf, error)
		needs []string
		shown []string // what tc lists, and what it says then
		want  []string
	}{
		{"htb", Plug.LimitByHTB, []string{"htb qdisc"}, []string{"class", "show", "dev", "line"}, []string{"class htb 11e1:1 root", "rate 100Mbit ceil 100Mbit"}},
		{"ifb", Plug.LimitByIfb, []string{"htb qdisc", "ifb link", "clsact qdisc", "mirred action"}, []string{"class", "show", "dev", ifb}, []string{"class htb 11e1:1 root", "rate 100Mbit ceil 100Mbit"}},
		{"ifb's way", Plug.LimitByIfb, []string{"htb qdisc", "ifb link", "clsact qdisc", "mirred action"}, []string{"filter", "show", "dev", "line", "egress"}, []string{"mirred (Egress Redirect to device " + ifb + ")"}},
		{"police", leafless(Plug.LimitByPolice), []string{"clsact qdisc", "police action"}, []string{"filter", "show", "dev", "line", "egress"}, []string{"rate 100Mbit burst 125000b", "action drop"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := testNet(t)
			a, b := newTestHost(t, n, "a"), newTestHost(t, n, "b")
			plug := Plug{Host: a, Device: "line"}
			if err := Wire(plug, Plug{Host: b, Device: "far"}, 1); err != nil {
				t.Fatal(err)
			}
			tc := func(args ...string) string {
				return testutil.Output(t, "nsenter", append([]string{"--net=" + a.Netns(), testutil.Tool(t, "tc")}, args...)...)
			}
			bare := tc("qdisc", "show")
			leaf, err := c.limit(plug, 100e6)
			if lacking, ok := errors.AsType[Lacking](err); ok {
				if got := tc("qdisc", "show"); got != bare {
					t.Errorf("was %s, and after the error is %s", bare, got)
				}
				testutil.Needs(t, c.needs...)
				t.Fatal(lacking)
			}
			if err != nil {
				t.Fatal(err)
			}
			got := tc(c.shown...)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in %s", want, got)
				}
			}
			if got := strings.Contains(tc("qdisc", "show"), "qdisc fq_codel "); got != (leaf == FqCodel) {
				t.Errorf("the leaf is said to be %q, but tc tells of fq_codel: %t", leaf, got)
			}
			// A second one is refused, and takes away what stands.
			if _, err := c.limit(plug, 100e6); !errors.Is(err, fs.ErrExist) {
				t.Errorf("twice: %v", err)
			}
			for range 2 { // taking away what is absent succeeds
				if err := plug.Unlimit(); err != nil {
					t.Fatal(err)
				}
				if got := tc("qdisc", "show"); got != bare {
					t.Errorf("was %s, is %s", bare, got)
				}
			}
		})
	}
}

// TestHalfALimit: a means that is lacking and can not be taken away either is more
// than an absent one.
func TestHalfALimit(t *testing.T) {
	a := newTestHost(t, testNet(t), "a")
	err := Plug{Host: a, Device: "none"}.limited("htb", Lacking("htb qdisc"))
	if _, ok := errors.AsType[Lacking](err); ok || err == nil {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"limit a:none by htb: this kernel lacks the htb qdisc; ", "find a:none: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %q", want, err)
		}
	}
}

func TestAbsent(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOENT, unix.EOPNOTSUPP} {
		if err := absent(errno, "htb qdisc"); err != Lacking("htb qdisc") || err.Error() != "this kernel lacks the htb qdisc" {
			t.Errorf("%v becomes %v", errno, err)
		}
	}
	for _, err := range []error{nil, unix.EINVAL} {
		if got := absent(err, "htb qdisc"); got != err {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

// TestReceivedCounts: what one byte there and back takes arrives at least.
func TestReceivedCounts(t *testing.T) {
	n := testNet(t)
	a, b := newTestHost(t, n, "a"), newTestHost(t, n, "b")
	far := Plug{Host: b, Device: "far", Addresses: prefixes("10.1.0.2/24")}
	if err := Wire(Plug{Host: a, Device: "line", Addresses: prefixes("10.1.0.1/24")}, far, 1); err != nil {
		t.Fatal(err)
	}
	before, bytesBefore, err := far.Received()
	if err != nil {
		t.Fatal(err)
	}
	if err := through(a, b, "10.1.0.2:7"); err != nil {
		t.Fatal(err)
	}
	packets, bytes, err := far.Received()
	// At the least ARP, SYN, ACK, the byte, and as many Ethernet headers.
	if packets -= before; err != nil || packets < 4 || bytes-bytesBefore < packets*42 {
		t.Errorf("%d packets of %d bytes, %v", packets, bytes-bytesBefore, err)
	}
	if _, _, err := (Plug{Host: b, Device: "none"}).Received(); err == nil || !strings.HasPrefix(err.Error(), "find b:none: ") {
		t.Errorf("no device: %v", err)
	}
}
