package hosts

import (
	"net"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// TestDepartures floods a device for two seconds: fq lets go what it was told the times
// of, and the sender waits.
func TestDepartures(t *testing.T) {
	testutil.Needs(t, "fq qdisc", "clsact qdisc")
	const rate, took = 10e6, 2 * time.Second
	n := testNet(t)
	a, b := newTestHost(t, n, "a"), newTestHost(t, n, "b")
	line := Plug{Host: a, Device: "line", Addresses: prefixes("10.1.0.1/24")}
	far := Plug{Host: b, Device: "far", Addresses: prefixes("10.1.0.2/24")}
	if err := Wire(line, far, 1); err != nil {
		t.Fatal(err)
	}
	if err := through(a, b, "10.1.0.2:7"); err != nil { // they know each other's address
		t.Fatal(err)
	}
	if err := line.LimitByDepartures(rate); err != nil {
		t.Fatal(err)
	}
	var conn net.Conn
	err := a.do(func() (err error) {
		conn, err = net.Dial("udp", "10.1.0.2:9")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, before, err := far.Received()
	if err != nil {
		t.Fatal(err)
	}
	datagrams, begin := 0, time.Now()
	for time.Since(begin) < took {
		if _, err := conn.Write(make([]byte, 1000)); err == nil { // nobody listens, and some are told
			datagrams++
		}
	}
	_, after, err := far.Received()
	if err != nil {
		t.Fatal(err)
	}
	got := float64(after-before) * 8 / time.Since(begin).Seconds()
	t.Logf("%.2f Mbit/s of %d datagrams", got/1e6, datagrams)
	if got < 0.9*rate || got > 1.02*rate {
		t.Errorf("%.2f Mbit/s below a limit of %.0f", got/1e6, rate/1e6)
	}
}
