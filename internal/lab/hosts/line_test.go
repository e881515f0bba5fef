package hosts

import (
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestLineAsTcSeesIt(t *testing.T) {
	n := testNet(t)
	a, b := newTestHost(t, n, "a"), newTestHost(t, n, "b")
	plug := Plug{Host: a, Device: "line"}
	if err := Wire(plug, Plug{Host: b, Device: "far"}, 1); err != nil {
		t.Fatal(err)
	}
	qdiscs := func() string {
		return testutil.Output(t, "nsenter", "--net="+a.Netns(), testutil.Tool(t, "tc"), "qdisc", "show", "dev", "line")
	}
	bare := qdiscs()
	for _, c := range []struct {
		line Line
		want []string
	}{
		{Line{Rate: 100e6, Queue: 64 << 10}, []string{"qdisc tbf 11e0: root", "rate 100Mbit", "burst 12500b", "lat 4.24ms"}},
		{Line{Rate: 1e9, Queue: 200 << 10}, []string{"qdisc tbf 11e0: root", "rate 1Gbit", "burst 125000b", "lat 638us"}}, // in place of the other
	} {
		if err := plug.SetLine(c.line); err != nil {
			t.Fatal(err)
		}
		got := qdiscs()
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
	}
	for range 2 { // taking away what is absent succeeds
		if err := plug.ClearLine(); err != nil {
			t.Fatal(err)
		}
		if got := qdiscs(); got != bare {
			t.Errorf("was %s, is %s", bare, got)
		}
	}
	testutil.Output(t, "nsenter", "--net="+a.Netns(), "tc", "qdisc", "add", "dev", "line", "root", "handle", "5:", "htb")
	foreign := qdiscs()
	if err := plug.ClearLine(); err != nil {
		t.Fatal(err)
	}
	if got := qdiscs(); !strings.HasPrefix(foreign, "qdisc htb 5: root") || !strings.HasPrefix(got, "qdisc htb 5: root") {
		t.Errorf("a queue that is not a line was %s and is %s", foreign, got)
	}
}

func TestLineWords(t *testing.T) {
	for line, want := range map[Line]string{
		{Rate: 100e6, Queue: 64 << 10}:     "tbf 100 Mbit/s with one fifo of 64 KiB",
		{Rate: 5_500_000, Queue: 15 << 10}: "tbf 5.5 Mbit/s with one fifo of 15 KiB",
	} {
		if got := line.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
