package bpf

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/fair"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// limited publishes rules under which port 1000 has a limit and port 2000 none.
func (w *wire) limited(max policy.Rate) *Generation {
	w.t.Helper()
	return w.limit(map[plan.Owner]policy.Rate{{Contract: plan.FirstID}: max})
}

// limit publishes rules under which ports 1000 and 2000 have contracts, and limits
// that nothing is known of yet.
func (w *wire) limit(limits map[plan.Owner]policy.Rate) *Generation {
	w.t.Helper()
	w.forgetLimits()
	rules, promises := ports(1000, 2000), w.promises()
	limit(&rules, &promises, limits)
	o := bare
	o.LinkLimits = len(limits)
	return w.publishTo(rules, promises, o)
}

// limit files limits where they belong: bandwidth, and packets a second in its place.
func limit(rules *plan.Rules, l *plan.LinkRules, limits map[plan.Owner]policy.Rate) {
	rules.Limits = map[plan.ContractID]plan.Limit{}
	for of, max := range limits {
		add := func(to plan.Limit) plan.Limit {
			if of.Packets {
				to.PPS = policy.PacketRate(max)
			} else {
				to.Max = max
			}
			return to
		}
		p := l.Contracts[of.Contract]
		switch {
		case of.Contract == plan.OwnEgress:
			l.Egress = add(l.Egress)
			continue
		case of.Contract == plan.OwnIngress:
			l.Ingress = add(l.Ingress)
			continue
		case of.Link == 0:
			rules.Limits[of.Contract] = add(rules.Limits[of.Contract])
			p.Limited = true
		default:
			p.Here = add(p.Here)
		}
		l.Contracts[of.Contract] = p
	}
}

// held is what became of the packets below the one limit that there is.
func held(t *testing.T, g *Generation) plan.Held {
	t.Helper()
	all, err := g.Held()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("%d limits, want one: %v", len(all), all)
	}
	for _, h := range all {
		return h
	}
	panic("unreachable")
}

// burst sends datagrams of 1,000 bytes on the wire to a port as fast as they go,
// with a TOS, and returns how many came, how many of them had the mark of
// congestion, and when each was sent.
func (w *wire) burst(t *testing.T, port, packets, tos int) (came, marked int, sent []sending) {
	t.Helper()
	return burst(t, w.here, w.there, w.to4(port), packets, tos)
}

func burst(t *testing.T, from, to *testutil.Namespace, address string, packets, tos int) (came, marked int, sent []sending) {
	t.Helper()
	var server *net.UDPConn
	var client net.Conn
	var err error
	to.Do(func() { server, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address))) })
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	setInt(t, server, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
	setInt(t, server, unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
	from.Do(func() { client, err = net.Dial("udp4", address) })
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	setInt(t, client.(*net.UDPConn), unix.IPPROTO_IP, unix.IP_TOS, tos)
	ended := make(chan struct{})
	begin, last := time.Now(), time.Duration(0)
	go func() {
		defer close(ended)
		buf, control := make([]byte, 2000), make([]byte, 64)
		for {
			_, n, _, _, err := server.ReadMsgUDP(buf, control)
			if err != nil {
				return
			}
			came++
			last = time.Since(begin)
			if n > 0 && control[n-8]&3 == 3 { // the last byte of the only message
				marked++
			}
		}
	}()
	for len(sent) < packets {
		from := time.Since(begin)
		// The limit is a full queue to the sender, which UDP is not told of.
		if _, err := client.Write(make([]byte, packet-42)); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, sending{from, time.Since(begin)})
	}
	_ = server.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	<-ended
	// What is held on its arrival may have waited for its turn before.
	end := &sent[len(sent)-1].to
	*end = max(*end, last)
	return came, marked, sent
}

const (
	packet = 1000                  // bytes on the wire of a datagram of burst
	bucket = 10 * time.Millisecond // how long the kernel's bucket collects (fair.h), and
	frames = 2 * 1514              // bytes beside
)

// A sending is a packet that left between two readings of the clock.
type sending struct{ from, to time.Duration }

// certain is how many packets an exact bucket must have let pass, wherever between
// its two readings of the clock each of them left: time is counted only as far as
// it has certainly passed, and the bucket is the less deep for the doubt that
// remains.
func certain(sent []sending, bytesPerSecond float64) int {
	const doubt = 2 * time.Millisecond
	deep := bytesPerSecond*(bucket-doubt).Seconds() + frames
	passed, content, last := 0, deep, time.Duration(0)
	for _, s := range sent {
		content = min(deep, content+bytesPerSecond*(min(s.to, s.from+doubt)-last).Seconds())
		if last = s.to; content >= 0 { // a packet of any size goes on top
			content -= packet
			passed++
		}
	}
	return passed
}

// checkBurst holds how many of a burst came against a limit: what that allows in the
// time, and nothing less.
func checkBurst(t *testing.T, came int, sent []sending, limit policy.Rate) {
	t.Helper()
	// What was sent beyond the limit is repaid by up to 1/32 of it.
	least := certain(sent, float64(limit)/8*31/32) - 1
	t.Logf("%d of %d came, %d to %.1f may", came, len(sent), least, most(sent, limit))
	if float64(came) > most(sent, limit) || came < least {
		t.Errorf("%d packets came, want %d to %.1f", came, least, most(sent, limit))
	}
}

// most is how many packets of a burst a limit lets pass: a packet of any size goes
// on top of what the bucket holds, and what an earlier packet, of a neighbour's
// question perhaps, has left of a chunk.
func most(sent []sending, limit policy.Rate) float64 {
	const chunk = bucket / 4
	return (float64(limit)/8*(sent[len(sent)-1].to+bucket+chunk).Seconds()+frames)/packet + 1
}

// TestLimitHolds counts what passes of a burst.
func TestLimitHolds(t *testing.T) {
	testutil.Proves(t, testutil.Limit)
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	const sent = 2000
	rates := []policy.Rate{80e6, 64e3, 8e6}
	if testing.Short() {
		rates = rates[:1]
	}
	for _, rate := range rates {
		t.Run(rate.String(), func(t *testing.T) {
			g := w.limited(rate)
			came, marked, sendings := w.burst(t, 1000, sent, 0)
			checkBurst(t, came, sendings, rate)
			if h := held(t, g); h.Dropped != uint64(sent-came) || marked != 0 || h.Marked != 0 || h.Passed < uint64(came)*packet {
				t.Errorf("%d came, %d marked: %+v", came, marked, h)
			}
		})
	}
	t.Run("no limit", func(t *testing.T) {
		g := w.limited(64e3)
		if came, _, _ := w.burst(t, 2000, 500, 0); came != 500 {
			t.Errorf("%d of 500 packets of another contract came", came)
		}
		if h := held(t, g); h.Dropped != 0 || h.Passed != 0 {
			t.Errorf("the limit was charged for another contract: %+v", h)
		}
	})
}

// Those that know congestion are told of it before anything is dropped.
func TestLimitMarks(t *testing.T) {
	testutil.Proves(t, testutil.Limit)
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	g := w.limited(8e6)
	const ect0 = 2
	came, marked, _ := w.burst(t, 1000, 500, ect0)
	h := held(t, g)
	t.Logf("%d came, %d of them marked", came, marked)
	if marked == 0 || uint64(marked) != h.Marked {
		t.Errorf("%d packets came marked, and %d were marked", marked, h.Marked)
	}
	if came-marked < 1 {
		t.Error("the first packet was marked, which no other one had to wait for")
	}
}

// Connections that nobody paces pay from the same bucket, and what acknowledges
// passes: so they go on, however slowly.
func TestLimitHoldsTCP(t *testing.T) {
	testutil.Proves(t, testutil.Limit)
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	l := w.listen(w.there, w.to4(1000))
	g := w.limited(8e6)
	c := w.dial(w.here, w.to4(1000))
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	read := make(chan int)
	go func() {
		total := 0
		for buf := make([]byte, 1<<16); ; {
			n, err := server.Read(buf)
			total += n
			if err != nil {
				read <- total
				return
			}
		}
	}()
	begin := time.Now()
	_ = c.SetWriteDeadline(begin.Add(2 * time.Second))
	for buf := make([]byte, 1<<16); ; {
		if _, err := c.Write(buf); err != nil {
			break
		}
	}
	took := time.Since(begin).Seconds()
	_ = server.SetReadDeadline(time.Now())
	got := <-read
	const grace = 1 << 16 // what a connection may send before it counts as unpaced
	t.Logf("%d bytes in %.1f s", got, took)
	const collected = 0.22 * 1e6 // in the bucket of streams, 220 ms deep
	if most := took*1e6*1.02 + grace + collected + 1<<16; float64(got) > most || got < grace {
		t.Errorf("%d bytes came, want at most %.0f", got, most)
	}
	if h := held(t, g); h.Dropped == 0 || !h.Streams {
		t.Errorf("nothing was dropped, or nothing went through the bucket of streams: %+v", h)
	}
}

// What the kernel says for connections that it has not is TCP, and is held no more
// than other acknowledgements, whatever datagrams there are.
func TestLimitPassesResets(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	g := w.limited(64e3)
	w.sink(1000)
	var flood net.Conn
	var err error
	w.here.Do(func() { flood, err = net.Dial("udp4", w.to4(1000)) })
	if err != nil {
		t.Fatal(err)
	}
	defer flood.Close()
	for range 5 {
		for range 2 { // at this limit the next one may pass 125 ms later
			if _, err := flood.Write(make([]byte, packet-42)); err != nil {
				t.Fatal(err)
			}
		}
		before := held(t, g)
		w.there.Do(func() { _, err = net.DialTimeout("tcp", fmt.Sprintf("%s:1000", w.link.IPv4.Addr()), 3*time.Second) })
		if !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("nobody listens: %v", err)
		}
		if after := held(t, g); after.Dropped != before.Dropped || after.Passed <= before.Passed {
			t.Errorf("%v before the reset, then %v", before, after)
		}
	}
}

// TestPacketsAreCounted sends datagrams that the kernel cuts into ten on their way out:
// a limit of packets counts ten, passes them together and holds the next.
func TestPacketsAreCounted(t *testing.T) {
	testutil.Proves(t, testutil.Limit)
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	w.sink(1000)
	const pps, segment, segments, sends = 20, 200, 10, 4
	g := w.limit(map[plan.Owner]policy.Rate{{Contract: plan.FirstID, Packets: true}: pps})
	var client net.Conn
	var err error
	w.here.Do(func() { client, err = net.Dial("udp4", w.to4(1000)) })
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	setInt(t, client.(*net.UDPConn), unix.IPPROTO_UDP, unix.UDP_SEGMENT, segment)
	for range sends { // ten packets are half a second's
		if _, err := client.Write(make([]byte, segments*segment)); err != nil {
			t.Fatal(err)
		}
	}
	if h := held(t, g); h.Passed < segments || h.Passed > segments+1 || h.Dropped != (sends-1)*segments {
		t.Errorf("%+v of %d times %d packets", h, sends, segments)
	}
}

// TestStrayDatagram sends one datagram below a limit: with it a CPU pays for what it may send from then on, and has not sent, so
// it is no flow for which others make room.
func TestStrayDatagram(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	for _, rate := range []policy.Rate{50e6, 1e9} {
		g := w.limited(rate)
		w.burst(t, 1000, 1, 0)
		n := numberFor(t, g, plan.Owner{Contract: plan.FirstID})
		if ahead := givenAhead(t, g, n); ahead == 0 {
			t.Errorf("%s: nothing was paid ahead", rate)
		}
		if load := lookUpBudget(t, g, n).Load; load != 0 {
			t.Errorf("%s: it counts as %d of %d, a greedy flow", rate, load, fair.One)
		}
	}
}

func TestLimitsAreReadBack(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	g := w.limited(1e6)
	want := map[plan.ContractID]plan.Limit{plan.FirstID: {Max: 1e6}}
	look := func() map[plan.ContractID]plan.Limit {
		t.Helper()
		rules, err := g.Rules()
		if err != nil {
			t.Fatal(err)
		}
		return rules.Limits
	}
	if diff := cmp.Diff(want, look()); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	promises, err := g.Promises(w.link.Index)
	if err != nil {
		t.Fatal(err)
	}
	if !promises[plan.FirstID].Limited || promises[plan.FirstID+1].Limited {
		t.Errorf("promises: %+v", promises)
	}
	// A limit that nothing charges is none.
	if err := g.tables[linkEgressMapLimiter].Delete(uint32(0)); err != nil {
		t.Fatal(err)
	}
	if got := look(); len(got) != 0 {
		t.Errorf("without its program the limits are %v", got)
	}
}

func TestHeldBackAttached(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	for name, of := range map[string]struct {
		attach   func(*Generation) error
		attached func(Room) bool
		detach   func(Room) error
	}{
		"pace":   {(*Generation).AttachPace, Room.PaceAttached, Room.DetachPace},
		"window": {(*Generation).AttachWindow, Room.WindowAttached, Room.DetachWindow},
	} {
		for range 2 { // anew, and in place of an older one
			g := w.limited(1e6)
			if err := g.LoadReceive(plan.Rules{}, nil); err != nil {
				t.Fatal(err)
			}
			if err := of.attach(g); err != nil {
				t.Fatal(err)
			}
			if !of.attached(w.room) {
				t.Errorf("%s is not attached", name)
			}
		}
		for range 2 {
			if err := of.detach(w.room); err != nil {
				t.Fatal(err)
			}
			if of.attached(w.room) {
				t.Errorf("%s is still attached", name)
			}
		}
	}
}
