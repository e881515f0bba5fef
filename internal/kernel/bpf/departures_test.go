package bpf

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// lo is the device of packets that BPF_PROG_TEST_RUN makes.
const lo = 1

// departingAt publishes rules under which port 1000 is limited by departure times: on all
// links together, and on this one.
func departingAt(t testing.TB, r Room, n uint32, together, here policy.Rate) *Generation {
	t.Helper()
	rules, l := ports(1000), promises(8)
	p := l.Contracts[plan.FirstID]
	if together != 0 {
		rules.Limits = map[plan.ContractID]plan.Limit{plan.FirstID: {Max: together, Departs: true}}
		p.Limited = true
	}
	if here != 0 {
		p.Here = plan.Limit{Max: here, Departs: true}
	}
	l.Contracts[plan.FirstID] = p
	g := begin(t, r, n, rules, bare)
	load(t, g, lo, rules, l)
	if err := g.SettleLimits(); err != nil {
		t.Fatal(err)
	}
	return g
}

// datagram is one of so many bytes on the wire to port 1000.
func datagram(size int, tos byte) []byte {
	frame := make([]byte, size)
	copy(frame, plan.Packet{
		Protocol: unix.IPPROTO_UDP, Ports: true,
		Source: netip.MustParseAddrPort("192.0.2.1:50000"), Dest: netip.MustParseAddrPort("192.0.2.2:1000"),
	}.Frame())
	const tosAt, lengthAt = 15, 16
	frame[tosAt] = tos
	binary.BigEndian.PutUint16(frame[lengthAt:], uint16(min(size-14, 65535)))
	return frame
}

// acknowledgement is a TCP packet of no data with some flags.
func acknowledgement(flags byte) []byte {
	frame := plan.Packet{
		Protocol: unix.IPPROTO_TCP, Ports: true,
		Source: netip.MustParseAddrPort("192.0.2.1:50000"), Dest: netip.MustParseAddrPort("192.0.2.2:1000"),
	}.Frame()
	const tcp, offset, flagsAt = 34, 12, 13
	frame[tcp+offset], frame[tcp+flagsAt] = 5<<4, flags
	return frame
}

// A departed is what became of a packet.
type departed struct {
	dropped bool
	at      time.Duration // when it may leave, by the monotonic clock; 0: at once
	tos     byte
}

// depart sends a packet through link_egress, with a time that it has already.
func depart(t testing.TB, g *Generation, frame []byte, at time.Duration) departed {
	t.Helper()
	const size, tstampAt = 192, 152 // of struct __sk_buff
	in, out := make([]byte, size), make([]byte, size)
	binary.NativeEndian.PutUint64(in[tstampAt:], uint64(at))
	o := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+256), Context: in, ContextOut: out, Repeat: 1}
	answer, err := g.links[lo].program.Run(&o)
	if err != nil {
		t.Fatal(err)
	}
	return departed{int32(answer) >= 0, time.Duration(binary.NativeEndian.Uint64(out[tstampAt:])), o.DataOut[15]}
}

// firstTogether is the first contract's limit of all links together.
var firstTogether = departing(plan.Owner{Contract: plan.FirstID})

// takenUntil has the limit of all links together be as if it had been busy, also with what
// goes ahead.
func takenUntil(t testing.TB, g *Generation, d departDeparture) {
	t.Helper()
	d.Ahead = d.Next
	if err := g.memory.departures.Put(firstTogether, d); err != nil {
		t.Fatal(err)
	}
}

// lasting is a departure without the flows of its round, and what has gone ahead.
func lasting(d departDeparture) departDeparture {
	d.Ahead, d.Flows, d.Round, d.Seen = 0, 0, 0, 0
	return d
}

func monotonic(t testing.TB) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// TestDepart: packets are a rate apart, what waits for long is marked, and what would wait
// too long is dropped and not charged.
func TestDepart(t *testing.T) {
	testutil.Needs(t, "BPF tail calls")
	g := departingAt(t, newRoom(t), 1, 8e6, 0) // 1,000 bytes a millisecond
	last, came, marked, dropped := time.Duration(0), 0, 0, 0
	for sent := 0; sent < 2000 && dropped < 20; sent++ { // a slow CPU takes its time
		p := depart(t, g, datagram(1000, 2), 0) // ECT(0)
		now := monotonic(t)
		switch {
		case p.dropped:
			dropped++
			continue
		case p.at == 0: // what was idle for long may be late
		case last == 0:
		case p.at-last != time.Millisecond:
			t.Errorf("packet %d leaves %s after the one before it", came, p.at-last)
		case p.at > now+100*time.Millisecond:
			t.Errorf("packet %d waits for %s", came, p.at-now)
		case p.tos == 3 && p.at < now+4*time.Millisecond: // the clock goes on between both looks
			t.Errorf("packet %d waits for %s, and is marked", came, p.at-now)
		case p.tos == 2 && p.at > now+5*time.Millisecond:
			t.Errorf("packet %d waits for %s, and is not marked", came, p.at-now)
		}
		if last = p.at; p.tos == 3 {
			marked++
		}
		came++
	}
	h := held(t, g)
	if int(h.Passed) != 1000*came || int(h.Dropped) != dropped || int(h.Marked) != marked || dropped < 20 || marked < 80 || came < 100 {
		t.Errorf("%+v, and %d came, %d were marked, %d dropped", h, came, marked, dropped)
	}
}

// TestDepartLatest: a packet below several limits leaves at the latest of their times, and
// never before the one that it had; each is charged.
func TestDepartLatest(t *testing.T) {
	testutil.Needs(t, "BPF tail calls")
	g := departingAt(t, newRoom(t), 1, 8e6, 4e6) // 1 ms, and 2 ms
	last := time.Duration(0)
	const packets = 20
	for i := range packets {
		p := depart(t, g, datagram(1000, 0), 0)
		if i > 5 && p.at-last != 2*time.Millisecond {
			t.Errorf("packet %d leaves %s after the one before it", i, p.at-last)
		}
		last = p.at
	}
	far := monotonic(t) + time.Hour
	if p := depart(t, g, datagram(1000, 0), far); p.at != far {
		t.Errorf("a packet that had a time leaves at %s, not %s", p.at, far)
	}
	all, err := g.Held()
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	for of, h := range all {
		if h.Passed != 1000*(packets+1) {
			t.Errorf("%+v: %+v", of, h)
		}
	}
	limits, err := g.limits()
	if err != nil || limits[plan.FirstID] != (plan.Limit{Max: 8e6, Departs: true}) {
		t.Errorf("read back: %v, %v", limits, err)
	}
	promises, err := g.Promises(lo)
	if p := promises[plan.FirstID]; err != nil || !p.Limited || p.Here != (plan.Limit{Max: 4e6, Departs: true}) {
		t.Errorf("read back: %+v, %v", p, err)
	}
	if n := g.memory.budgets.MaxEntries(); n != 1 {
		t.Errorf("room for %d budgets, though none is charged", n-1)
	}
	later, err := g.room.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	moved := promises[plan.FirstID]
	moved.Priority = 5
	if err := later.SetPromise(lo, plan.FirstID, moved); err != nil {
		t.Fatal(err)
	}
	if promises, err := later.Promises(lo); err != nil || promises[plan.FirstID] != moved {
		t.Errorf("with another priority: %+v, %v", promises[plan.FirstID], err)
	}
}

// TestDepartAhead: a flow that sends little goes ahead of what waits, and is charged; not one
// that sends more than its even part, or has a packet that waits; and all of them have
// no more than a part of the limit.
func TestDepartAhead(t *testing.T) {
	testutil.Needs(t, "BPF tail calls")
	g := departingAt(t, newRoom(t), 1, 8e6, 0) // 1,000 bytes a millisecond
	flow := func(port uint16, size int) []byte {
		frame := datagram(size, 0)
		binary.BigEndian.PutUint16(frame[34:], port) // of the source
		return frame
	}
	fill := func(ahead time.Duration) time.Duration {
		now := monotonic(t)
		if err := g.memory.departures.Put(firstTogether, departDeparture{
			Rate: 1e6, Next: uint64(now + 50*time.Millisecond), Ahead: uint64(now + ahead),
		}); err != nil {
			t.Fatal(err)
		}
		return now + 50*time.Millisecond
	}
	next := fill(0)
	if p := depart(t, g, flow(1, 1400), 0); p.dropped || p.at != 0 {
		t.Errorf("a first packet: %+v", p)
	}
	p := depart(t, g, flow(1, 1400), 0)
	if p.at < next+1400*time.Microsecond || p.at > next+1401*time.Microsecond {
		t.Errorf("the second one, beyond the flow's part: it leaves %s after the line before it", p.at-next)
	}
	if q := depart(t, g, flow(1, 60), 0); q.at != p.at+1400*time.Microsecond {
		t.Errorf("a small one would overtake another of its flow: it leaves %s after that", q.at-p.at)
	}
	next = fill(0)
	if p := depart(t, g, flow(2, 1600), 0); p.at != next {
		t.Errorf("a packet larger than a frame: %+v", p)
	}
	fill(0)
	went := 0
	for i := range 200 { // more than one flow may have, and than all may
		if p := depart(t, g, flow(uint16(100+i), 100), 0); !p.dropped && p.at == 0 {
			went++
		}
	}
	if went < 25 || went > 190 { // 3 ms of the limit, and what the clock adds
		t.Errorf("%d of 200 went ahead", went)
	}
	fill(time.Second)
	if p := depart(t, g, flow(1000, 60), 0); p.at == 0 {
		t.Error("one went ahead while nothing more may")
	}
}

// TestDepartRefused: a packet that one of its limits has no room for is charged to none.
func TestDepartRefused(t *testing.T) {
	testutil.Needs(t, "BPF tail calls")
	g := departingAt(t, newRoom(t), 1, 8e3, 4e6) // 1 s, and 2 ms
	here := departing(plan.Owner{Contract: plan.FirstID, Link: lo})
	begin := monotonic(t)
	depart(t, g, datagram(1000, 0), 0)
	taken := departDeparture{Rate: 500_000, Next: uint64(begin + time.Hour), Ahead: uint64(begin + time.Hour)}
	if err := g.memory.departures.Put(here, taken); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if p := depart(t, g, datagram(1000, 0), 0); !p.dropped {
			t.Errorf("%+v", p)
		}
	}
	for of, want := range map[departDeparting]departDeparture{
		firstTogether: {Rate: 1000, Passed: 1000, InWindow: 1000}, here: {Rate: taken.Rate, Next: taken.Next, Dropped: 5},
	} {
		var is departDeparture
		if err := g.memory.departures.Lookup(of, &is); err != nil {
			t.Fatal(err)
		}
		if next := time.Duration(is.Next); want.Next == 0 && (next < begin+time.Second-2*time.Millisecond || next > monotonic(t)+time.Second) {
			t.Errorf("%+v is taken until %s after it began", of, next-begin)
		}
		if is.Window = 0; want.Next == 0 {
			is.Next = 0
		}
		if is = lasting(is); is != want {
			t.Errorf("%+v: %+v, want %+v", of, is, want)
		}
	}
}

// TestDepartBare: acknowledgements are charged and neither wait nor are dropped; what ends a
// connection waits behind its data.
func TestDepartBare(t *testing.T) {
	testutil.Needs(t, "BPF tail calls")
	g := departingAt(t, newRoom(t), 1, 8e6, 0)
	takenUntil(t, g, departDeparture{Rate: 1e6, Next: uint64(monotonic(t) + time.Hour)})
	const fin, syn, rst, ack = 1, 2, 4, 16
	for flags, waits := range map[byte]bool{ack: false, syn: false, syn | ack: false, fin | ack: true, rst: true} {
		if p := depart(t, g, acknowledgement(flags), 0); p.dropped != waits || !waits && p.at != 0 {
			t.Errorf("flags %#x: %+v", flags, p)
		}
	}
	with := append(acknowledgement(ack), 'x')
	with[17]++ // its length
	if p := depart(t, g, with, 0); !p.dropped {
		t.Errorf("with data: %+v", p)
	}
	const size = 54
	if h := held(t, g); h.Passed != 3*size || h.Dropped != 3 {
		t.Errorf("%+v", h)
	}
}

// TestDepartSlow: of packets that take long, one may wait behind the one that leaves.
func TestDepartSlow(t *testing.T) {
	testutil.Needs(t, "BPF tail calls")
	g := departingAt(t, newRoom(t), 1, 64e3, 0) // 1,514 bytes take 189 ms
	for i, dropped := range []bool{false, false, false, true} {
		if p := depart(t, g, datagram(1514, 0), 0); p.dropped != dropped {
			t.Errorf("packet %d: %+v", i, p)
		}
	}
	if p := depart(t, g, datagram(200, 0), 0); !p.dropped {
		t.Errorf("a small one waits as long: %+v", p)
	}
}

// TestDepartOnCPUs: whatever CPUs do at once, what passed has its time, and none waits too long.
func TestDepartOnCPUs(t *testing.T) {
	testutil.Needs(t, "BPF tail calls")
	g := departingAt(t, newRoom(t), 1, 80e6, 0) // 1,000 bytes in 100 us
	const senders, each = 4, 2000
	begin := monotonic(t)
	var wait sync.WaitGroup
	var longest [senders]time.Duration
	for i := range senders {
		wait.Go(func() {
			for range each {
				if p := depart(t, g, datagram(1000, 0), 0); !p.dropped && p.at != 0 {
					longest[i] = max(longest[i], p.at-monotonic(t))
				}
			}
		})
	}
	wait.Wait()
	end := monotonic(t)
	all, err := read[departDeparting, departDeparture](g.memory.departures)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, d := range all {
		took := time.Duration(d.Passed) * 100 * time.Microsecond / 1000
		if next := time.Duration(d.Next); next < begin+took-2*time.Millisecond || next > end+took {
			t.Errorf("what passed takes %s, and its line ends %s after the first", took, next-begin)
		}
		if d.Passed/1000+d.Dropped != senders*each {
			t.Errorf("%d of %d are counted", d.Passed/1000+d.Dropped, senders*each)
		}
	}
	for _, l := range longest {
		if l > 100*time.Millisecond {
			t.Errorf("a packet waits for %s", l)
		}
	}
}

// TestDeparturesStay: a new generation forgets nothing of what waits, unless the limit goes.
func TestDeparturesStay(t *testing.T) {
	testutil.Needs(t, "BPF tail calls")
	r := newRoom(t)
	g := departingAt(t, r, 1, 8e6, 0)
	far := uint64(monotonic(t) + time.Hour)
	takenUntil(t, g, departDeparture{Rate: 1e6, Next: far, Passed: 80_000})
	for n, want := range []departDeparture{{Rate: 1e6, Next: far, Passed: 80_000, Dropped: 1}, {Rate: 5e5, Next: far, Dropped: 1}} {
		g = departingAt(t, r, uint32(n+2), policy.Rate(want.Rate*8), 0)
		if p := depart(t, g, datagram(1000, 0), 0); !p.dropped {
			t.Errorf("generation %d: %+v", n+2, p)
		}
		var is departDeparture
		if err := g.memory.departures.Lookup(firstTogether, &is); err != nil || lasting(is) != want {
			t.Errorf("generation %d: %+v, %v", n+2, is, err)
		}
	}
	g = departingAt(t, r, 4, 0, 0)
	if p := depart(t, g, datagram(1000, 0), 0); p.dropped || p.at != 0 {
		t.Errorf("without a limit: %+v", p)
	}
	if all, err := read[departDeparting, departDeparture](g.memory.departures); err != nil || len(all) != 0 {
		t.Errorf("left over: %v, %v", all, err)
	}
}

// TestSetDeparture: a limit by departure times comes, changes and goes while its generation is
// in force, where that is prepared for it. What waits keeps its time, but for what would keep
// all else out.
func TestSetDeparture(t *testing.T) {
	testutil.Needs(t, "BPF tail calls")
	rules, l := ports(1000), promises(8)
	o := bare
	o.Times = true
	g := begin(t, newRoom(t), 1, rules, o)
	load(t, g, lo, rules, l)
	limit := func(max policy.Rate) {
		t.Helper()
		if err := g.SetLimit(plan.FirstID, plan.Limit{Max: max, Departs: true}); err != nil {
			t.Fatal(err)
		}
	}
	promise := func(limited bool) {
		t.Helper()
		p := l.Contracts[plan.FirstID]
		p.Limited = limited
		if err := g.SetPromise(lo, plan.FirstID, p); err != nil {
			t.Fatal(err)
		}
		if is, err := g.Promises(lo); err != nil || is[plan.FirstID] != p {
			t.Errorf("promised is %+v, %v, want %+v", is[plan.FirstID], err, p)
		}
	}
	free := func() {
		t.Helper()
		if p := depart(t, g, datagram(1000, 0), 0); p.dropped || p.at != 0 {
			t.Errorf("without a limit: %+v", p)
		}
		if all, err := g.limits(); err != nil || len(all) != 0 {
			t.Errorf("left over: %v, %v", all, err)
		}
	}
	free()
	limit(8e6)
	promise(true)
	for range 5 {
		depart(t, g, datagram(1000, 0), 0)
	}
	if p := depart(t, g, datagram(1000, 0), 0); p.dropped || p.at == 0 {
		t.Errorf("%+v", p)
	}
	if held, err := g.Held(); err != nil || held[plan.Owner{Contract: plan.FirstID}].Passed != 6000 {
		t.Errorf("%+v, %v", held, err)
	}
	now := uint64(monotonic(t))
	for _, c := range []struct {
		taken time.Duration // from now on, before the change
		to    policy.Rate
		most  time.Duration // likewise, after it
	}{{20 * time.Millisecond, 4e6, 20 * time.Millisecond}, {20 * time.Second, 16e6, time.Second}, {20 * time.Second, 64e3, 2 * time.Second}} {
		takenUntil(t, g, departDeparture{Rate: 1e6, Next: now + uint64(c.taken), Passed: 80_000, Busiest: 7})
		limit(c.to)
		var is departDeparture
		if err := g.memory.departures.Lookup(firstTogether, &is); err != nil || is.Rate != uint64(c.to/8) || is.Passed != 80_000 || is.Busiest != 0 {
			t.Errorf("to %s: %+v, %v", c.to, is, err)
		}
		if left := time.Duration(is.Next - now); left > c.most || left < min(c.taken, 20*time.Millisecond) {
			t.Errorf("to %s: taken for %s", c.to, left)
		}
	}
	if err := g.SettleLimits(); err != nil { // it has been given what it holds
		t.Fatal(err)
	}
	if all, err := g.limits(); err != nil || all[plan.FirstID] != (plan.Limit{Max: 64e3, Departs: true}) {
		t.Errorf("held is %v, %v", all, err)
	}
	promise(false)
	for range 2 {
		if err := g.RemoveLimit(plan.FirstID); err != nil {
			t.Fatal(err)
		}
		free()
	}
	unprepared := begin(t, newRoom(t), 1, rules, bare)
	if err := unprepared.SetLimit(plan.FirstID, plan.Limit{Max: 64e3, Departs: true}); !errors.Is(err, ErrNoLimits) {
		t.Errorf("where nothing is prepared: %v", err)
	}
}

// TestAnswersAreReadBack: a link knows whose answers wait.
func TestAnswersAreReadBack(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	rules, l := ports(1000), promises(8)
	rules.Arriving = map[plan.ContractID]plan.Limit{plan.FirstID: {Max: 1e9, Answers: true}}
	l.Contracts[plan.FirstID] = plan.Promise{Serial: 1, Answers: true}
	g := begin(t, newRoom(t), 1, rules, bare)
	load(t, g, lo, rules, l)
	again, err := g.Promises(lo)
	if err != nil || again[plan.FirstID] != l.Contracts[plan.FirstID] || again[plan.FirstID+1].Answers {
		t.Errorf("read back: %+v, %v", again, err)
	}
}

// TestDepartPaced: a packet below budgets and departures is charged to both.
func TestDepartPaced(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	rules, l := ports(1000), promises(8)
	rules.Limits = map[plan.ContractID]plan.Limit{plan.FirstID: {Max: 1e9}}
	l.Contracts[plan.FirstID] = plan.Promise{Serial: 1, Limited: true, Here: plan.Limit{Max: 800e3, Departs: true}}
	o := bare
	o.LinkLimits = 1
	g := begin(t, newRoom(t), 1, rules, o)
	load(t, g, lo, rules, l)
	if err := g.SettleLimits(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		depart(t, g, datagram(1000, 0), 0)
	}
	all, err := g.Held()
	if err != nil || len(all) != 2 || all[plan.Owner{Contract: plan.FirstID, Link: lo}].Passed != 10_000 || all[plan.Owner{Contract: plan.FirstID}].Passed < 10_000 {
		t.Errorf("%+v, %v", all, err)
	}
	if p := depart(t, g, datagram(1000, 0), 0); p.at == 0 {
		t.Errorf("%+v", p)
	}
}
