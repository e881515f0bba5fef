package agent

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// datagrams sends so many, of 1,000 bytes, from this side to a port.
func (b *bench) datagrams(t *testing.T, port, n int) {
	t.Helper()
	var c *net.UDPConn
	var err error
	b.here.Do(func() { c, err = net.ListenUDP("udp4", nil) }) // not connected: nobody listens there
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range n {
		if _, err := c.WriteToUDPAddrPort(make([]byte, 1000), netip.AddrPortFrom(b.far.IPv4.Addr(), uint16(port))); err != nil {
			t.Fatal(err)
		}
	}
}

// past sends frames to the device past everything that stands before it.
func (b *bench) past(t *testing.T, n int) {
	t.Helper()
	b.here.Do(func() {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(fd)
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
			t.Error(err)
		}
		for range n {
			if err := unix.Sendto(fd, make([]byte, 1000), 0, &unix.SockaddrLinklayer{Ifindex: b.link.Index}); err != nil {
				t.Error(err)
				return
			}
		}
	})
}

// Rows are what was sent under each contract, and together what the device has counted.
func TestTop(t *testing.T) {
	testutil.Needs(t, "ip")
	b := newBench(t)
	w := b.Watch()
	if _, err := w.Next(context.Background(), 0); !errors.Is(err, ErrNothingApplied) {
		t.Errorf("without a policy: %v", err)
	}
	b.apply(t, b.policyText("  one: {match: [{port: 4001}], priority: 3}\n  two: {match: [{port: 4002}], priority: 5}\n  idle: {match: [{port: 4009}], priority: 5}\n"))
	if _, err := w.Next(context.Background(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	before := b.sent(t)
	b.datagrams(t, 4001, 400)
	b.datagrams(t, 4002, 100)
	b.datagrams(t, 4003, 300)
	b.past(t, 200)
	for try := 0; b.sent(t).Packets < before.Packets+1000 && try < 1000; try++ { // the line has its rate
		time.Sleep(10 * time.Millisecond)
	}
	after := b.sent(t)
	top, err := w.Next(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if !top.OK || len(top.Links) != 1 || top.Links[0].Rate != 100e6 || top.Seconds <= 0 {
		t.Errorf("%+v", top)
	}
	var sum plan.Speed
	for _, row := range top.Rows {
		sum.Bits += row.Sent.Bits * top.Seconds / 8
		sum.Packets += row.Sent.Packets * top.Seconds
		near := map[string]float64{"one": 400, "two": 100, "idle": 0, plan.RowUnclaimed: 300, plan.RowUnclassified: 0, plan.RowUnattributed: 200}
		if want, known := near[row.Workload]; !known || math.Abs(row.Sent.Packets*top.Seconds-want) > 6 { // neighbours are looked for, too
			t.Errorf("%s sent %.1f packets, want %v", row.Workload, row.Sent.Packets*top.Seconds, want)
		}
	}
	bytes, packets := float64(after.Bytes-before.Bytes), float64(after.Packets-before.Packets)
	t.Logf("rows have %.0f bytes in %.0f packets, the device %.0f in %.0f", sum.Bits, sum.Packets, bytes, packets)
	if math.Abs(sum.Bits-bytes) > bytes/50 || math.Abs(sum.Packets-packets) > packets/50 {
		t.Errorf("rows have %.0f bytes in %.0f packets, the device %.0f in %.0f", sum.Bits, sum.Packets, bytes, packets)
	}
}

// Limits tell how much of them is used, and what they drop is in no row. Sockets are counted,
// and what is held of a bound.
func TestTopOfLimits(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls", "ip")
	b := newBench(t)
	b.apply(t, b.policyText("  held: {match: [{port: 4001}], egress: {max: 4Mbit}}\n"))
	w := b.Watch()
	if _, err := w.Next(context.Background(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	var err error
	b.there.Do(func() { l, err = net.Listen("tcp4", b.far.IPv4.Addr().String()+":4001") })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var c net.Conn
	b.here.Do(func() { c, err = net.Dial("tcp4", l.Addr().String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	launch(t, b.here, "", exec.Command("sleep", "600")) // or nobody is here, and nobody looks
	before := b.sent(t)
	for begin := time.Now(); time.Since(begin) < time.Second; time.Sleep(10 * time.Millisecond) {
		b.datagrams(t, 4001, 20) // four times its limit
	}
	after := b.sent(t)
	top, err := w.Next(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(top.Rows, func(r plan.Row) bool { return r.Workload == "held" })
	if i < 0 {
		t.Fatalf("%+v", top.Rows)
	}
	row := top.Rows[i]
	t.Logf("%+v, %+v", row, *row.Limit)
	if row.Limit.Terms != "egress at most 4Mbit" || row.Limit.Percent < 10 || row.Limit.Percent > 110 || row.Dropped == 0 || row.Sockets != 1 {
		t.Errorf("%+v, %+v", row, row.Limit)
	}
	passed := 8 * float64(after.Bytes-before.Bytes) / top.Seconds
	if math.Abs(row.Sent.Bits-passed) > passed/20 {
		t.Errorf("its row has %.0f bits a second, the device %.0f", row.Sent.Bits, passed)
	}
}
