package bpf

import (
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// answered writes a byte and waits until the far end has acknowledged it.
func answered(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		var left int
		descriptor(t, c.(syscall.Conn), func(fd int) {
			var err error
			if left, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ); err != nil {
				t.Fatal(err)
			}
		})
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d bytes are not answered", left)
		}
	}
}

// restingAt is what a program notes of those that rest, or did, on each CPU.
func restingAt(t *testing.T, p *ebpf.Program) (noted []linkEgressResting) {
	t.Helper()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if info, err := m.Info(); err != nil || info.Name != linkEgressMapResting {
			continue
		}
		var place uint32
		var each []linkEgressResting
		for all := m.Iterate(); all.Next(&place, &each); {
			for _, r := range each {
				if r.Socket != 0 {
					noted = append(noted, r)
				}
			}
		}
		return noted
	}
	t.Fatal("the program notes of nobody that it rests")
	return nil
}

// restingIn is of how many sockets a program notes that they rest, or did, and of which contract.
func restingIn(t *testing.T, p *ebpf.Program) map[plan.ContractID]int {
	t.Helper()
	n := map[plan.ContractID]int{}
	for _, r := range restingAt(t, p) {
		n[plan.ContractID(r.Contract)]++
	}
	return n
}

// TestRests: what a connection answers that rests is counted, has the priority that its contract has now, and is charged to a limit that
// has come since.
func TestRests(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newShortWire(t)
	answerEach(w.here, w.link)
	rules, l := w.rules(3)
	rules.Arriving = map[plan.ContractID]plan.Limit{plan.FirstID: {Max: 10e9, Answers: true}}
	rules.Limits = map[plan.ContractID]plan.Limit{plan.FirstID: {Max: 1e9}}
	promise := plan.Promise{Priority: 3, Serial: 1, Answers: true}
	l.Contracts[plan.FirstID] = promise
	g := w.publishReceiving(rules, l, map[string]plan.Contract{"one": {ID: plan.FirstID, Serial: 1}})
	c := w.source("tcp4")(w.wire)
	answer := func(n int, priority uint32) {
		t.Helper()
		before, counted := w.passed(w.seen, priority), w.count(t, g, plan.FirstID).Packets
		for range n {
			answered(t, c)
		}
		if got, is := w.passed(w.seen, priority)-before, w.count(t, g, plan.FirstID).Packets-counted; got < uint64(n) || is != got {
			t.Fatalf("of %d answers %d had priority %d, and %d are counted", n, got, priority, is)
		}
	}
	set := func() {
		t.Helper()
		if err := g.SetPromise(w.link.Index, plan.FirstID, promise); err != nil {
			t.Fatal(err)
		}
	}
	answer(2000, 3)
	if got := restingIn(t, g.links[w.link.Index].program); got[plan.FirstID] == 0 {
		t.Fatalf("it does not rest: %v", got)
	}
	for range 50 {
		for _, promise.Priority = range []uint32{5, 3} {
			set()
			answer(3, promise.Priority)
		}
	}
	of := plan.Owner{Contract: plan.FirstID}
	charged := func() uint64 {
		t.Helper()
		all, err := g.Held()
		if err != nil {
			t.Fatal(err)
		}
		return all[of].Passed - givenAhead(t, g, numberFor(t, g, of))
	}
	if got := charged(); got != 0 {
		t.Fatalf("%d bytes are charged to a limit that the contract does not have yet", got)
	}
	const size, n = 14 + 20 + 32, 100 // with timestamps
	for range 8 {
		promise.Limited = false
		set()
		before := charged()
		for range n {
			answered(t, c)
		}
		promise.Limited = true
		set() // while it rests
		for range n {
			answered(t, c)
		}
		time.Sleep(10 * time.Millisecond) // what is on its tab is charged with the next one
		answered(t, c)
		if got := charged() - before; got < (n+1)*size {
			t.Fatalf("%d bytes are charged of %d", got, (n+1)*size)
		}
	}
}

// TestDatagramsRest: what is noted of a socket that rests holds for as long as its contract is the same, whatever that is changed to, and
// its packets are counted.
func TestDatagramsRest(t *testing.T) {
	w := newShortWire(t)
	rules, l := w.rules(3)
	g := w.force(rules, l)
	c := w.socket()
	sent := 0
	send := func(n int, priority uint32) {
		t.Helper()
		w.datagrams(c, w.far, w.seen, n, priority)
		sent += n
	}
	send(5, 3)
	if got := restingIn(t, g.links[w.link.Index].program); got[plan.FirstID] == 0 {
		t.Fatalf("it does not rest: %v", got)
	}
	set := func(g *Generation, priority uint32) {
		t.Helper()
		if err := g.SetPromise(w.link.Index, plan.FirstID, plan.Promise{Priority: priority, Serial: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, priority := range []uint32{5, 0, 30} {
		set(g, priority)
		send(3, priority)
	}
	set(g, plan.Keep)
	setInt(t, c, unix.SOL_SOCKET, unix.SO_PRIORITY, 6)
	send(3, 6)
	for _, priority := range []uint32{31, 1000} { // the last that are counted by themselves, and one above
		set(g, priority)
		send(3, priorities-1)
	}
	again, err := w.room.Open(w.number)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	set(again, 7)
	send(3, 7)
	restore, err := g.Herd(w.link.Index, func(plan.ContractID) (uint32, bool) { return 2, true })
	if err != nil {
		t.Fatal(err)
	}
	send(3, 2)
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	send(3, 7)
	g = w.force(rules, l)
	send(3, 3)
	if got := w.count(t, g, plan.FirstID).Packets; got != uint64(sent) {
		t.Errorf("%d packets are counted of %d", got, sent)
	}
}

// TestRestsOfLinks: one socket's packets get by each of two links what that says.
func TestRestsOfLinks(t *testing.T) {
	w := newShortWire(t)
	rules, l := w.rules(3)
	second, far := testutil.Veth(t, w.here, w.there, testutil.VethOptions{})
	seen := w.watch(second)
	g := w.force(rules, l)
	_, other := w.rules(4)
	load(t, g, second.Index, rules, other)
	w.attachTo(g, second)
	c := w.socket()
	for range 3 {
		w.datagrams(c, w.far, w.seen, 3, 3)
		w.datagrams(c, far, seen, 3, 4)
	}
	for range 3 {
		w.datagrams(c, w.far, w.seen, 1, 3)
		w.datagrams(c, far, seen, 1, 4)
	}
}

// TestRestsUntilSettled: all packets of a socket that rests go by a new contract once that has settled.
func TestRestsUntilSettled(t *testing.T) {
	w := newShortWire(t)
	rules, l := w.rules(3)
	l.Contracts[plan.FirstID+1] = plan.Promise{Priority: 5, Serial: 1}
	w.force(rules, l)
	c := w.socket()
	for i := range 20 {
		id, priority := plan.FirstID+1, uint32(5)
		if i%2 == 1 {
			id, priority = plan.FirstID, 3
		}
		descriptor(t, c, func(fd int) {
			if changed, err := w.sockets.Identify(fd, Identity{Tag: plan.Contract{ID: id, Serial: 1}.Tag()}); err != nil || !changed {
				t.Fatalf("changed %v, %v", changed, err)
			}
		})
		w.sockets.Settle()
		w.datagrams(c, w.far, w.seen, 200, priority)
	}
}

// TestRestsLimited: what datagrams of a socket that rests take of its limits is charged to each, until it is below none.
func TestRestsLimited(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	for _, above := range []int{0, 1} { // of its own, and one more
		w := newShortWire(t)
		rules, l := w.rules(3)
		limits := map[plan.Owner]policy.Rate{{Contract: plan.FirstID}: 1e9}
		if above > 0 {
			w.further(&rules, &l)
			limits[plan.Owner{Contract: plan.FirstID + 1}] = 2e9
		}
		limit(&rules, &l, limits)
		g := w.force(rules, l)
		charged := func(of plan.Owner) uint64 {
			t.Helper()
			all, err := g.Held()
			if err != nil {
				t.Fatal(err)
			}
			return all[of].Passed - givenAhead(t, g, numberFor(t, g, of))
		}
		// passed is what passed below a limit: in that of the one further up the kernel sends something by itself.
		passed := func(of plan.Owner) uint64 {
			t.Helper()
			bytes := w.count(t, g, plan.FirstID).Bytes
			if of.Contract != plan.FirstID {
				bytes += w.count(t, g, of.Contract).Bytes
			}
			return bytes
		}
		c := w.socket()
		const size = 14 + 20 + 8 + 1
		for range 50 {
			w.datagrams(c, w.far, w.seen, 7, 3)
			if c := w.count(t, g, plan.FirstID); c.Bytes != size*c.Packets {
				t.Fatalf("%+v passed", c)
			}
			for of := range limits {
				before := passed(of)
				got := charged(of)
				for after := passed(of); after != before; after = passed(of) { // that came in between
					before, got = after, charged(of)
				}
				if got != before {
					t.Fatalf("%d bytes are charged to %+v, and %d passed", got, of, before)
				}
			}
		}
		if got := restingIn(t, g.links[w.link.Index].program); got[plan.FirstID] == 0 {
			t.Errorf("it does not rest: %v", got)
		}
		if above > 0 {
			continue
		}
		of := plan.Owner{Contract: plan.FirstID}
		before := charged(of)
		if err := g.SetPromise(w.link.Index, plan.FirstID, plan.Promise{Priority: 5, Serial: 1}); err != nil {
			t.Fatal(err)
		}
		w.datagrams(c, w.far, w.seen, 7, 5)
		if got := charged(of); got != before {
			t.Errorf("%d bytes are charged to a limit that its contract has no more", got-before)
		}
	}
}

// further has the wire's cgroup lie in one of another contract.
func (w *shortWire) further(r *plan.Rules, l *plan.LinkRules) {
	w.t.Helper()
	r.Cgroups[cgroupID(w.t, filepath.Dir(w.room.Cgroup))] = plan.FirstID + 1
	l.Contracts[plan.FirstID+1] = plan.Promise{Priority: 4, Serial: 1}
}

// TestWhoRests: where more has to be known of each packet its socket does not.
func TestWhoRests(t *testing.T) {
	limitOf := func(of plan.Owner) func(*shortWire, *plan.Rules, *plan.LinkRules) {
		return func(w *shortWire, r *plan.Rules, l *plan.LinkRules) {
			if of.Link != 0 {
				of.Link = w.link.Index
			}
			limit(r, l, map[plan.Owner]policy.Rate{of: 1e9})
		}
	}
	for name, c := range map[string]struct {
		change func(*shortWire, *plan.Rules, *plan.LinkRules)
		rests  bool
	}{
		"a queue of ours":  {func(_ *shortWire, _ *plan.Rules, l *plan.LinkRules) { l.NoQueue = false }, true},
		"a limit":          {limitOf(plan.Owner{Contract: plan.FirstID}), true},
		"a link's own":     {limitOf(plan.Owner{Contract: plan.OwnEgress, Link: 1}), false},
		"a limit there":    {limitOf(plan.Owner{Contract: plan.FirstID, Link: 1}), false},
		"one of packets":   {limitOf(plan.Owner{Contract: plan.FirstID, Packets: true}), false},
		"rules by headers": {func(_ *shortWire, r *plan.Rules, _ *plan.LinkRules) { *r = ports(4000) }, false},
		"a limit further up": {func(w *shortWire, r *plan.Rules, l *plan.LinkRules) {
			w.further(r, l)
			limit(r, l, map[plan.Owner]policy.Rate{{Contract: plan.FirstID + 1}: 1e9})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newShortWire(t)
			rules, l := w.rules(3)
			if c.change(w, &rules, &l); len(rules.Limits) > 0 || l.Egress != (plan.Limit{}) || l.Contracts[plan.FirstID].Here != (plan.Limit{}) {
				testutil.Needs(t, "BPF atomics", "BPF tail calls")
			}
			g := w.force(rules, l)
			w.datagrams(w.socket(), w.far, w.seen, 50, 3)
			if got := restingIn(t, g.links[w.link.Index].program); got[plan.FirstID] > 0 != c.rests {
				t.Errorf("it is noted of %v that they rest", got)
			}
		})
	}
}

// TestRestingTab: whatever connections send that rest is charged, on their tabs, or on the ones that lie where they rest, of which none takes
// more than 1/64 of what its connection has been charged for: of one, and of as many as have to share some of the places.
func TestRestingTab(t *testing.T) {
	for _, n := range []int{1, 24} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			for range 5 {
				if restingTabs(t, n) {
					return
				}
			}
			t.Error("each of five attempts takes so long that what lies where one rests may be forgotten")
		})
	}
}

// restingTabs is TestRestingTab of n connections, and false if that took too long.
func restingTabs(t *testing.T, n int) bool {
	t.Helper()
	w, g := pacedWire(t, 10e9)
	s := sockets(t, w.room)
	program := g.links[w.link.Index].program
	w.listenFor(w.there, w.to4(4000), func(c net.Conn) { go discardAll(c) })
	begin := time.Now()
	all := make([]*net.TCPConn, n)
	for i := range all {
		all[i] = w.dial(w.here, w.to4(4000))
		write(t, all[i], steady)
		acknowledged(t, all[i])
	}
	var most, deepest uint64
	for range 4 {
		for _, c := range all { // a tab is for no longer than 977 us
			for range 40 {
				write(t, c, 1)
			}
		}
		var lie, on uint64
		for _, c := range all {
			acknowledged(t, c)
			descriptor(t, c, func(fd int) {
				var k linkEgressKnown
				if err := s.verdicts.Lookup(uint32(fd), &k); err != nil {
					t.Fatal(err)
				}
				on += uint64(k.Tab.Bytes)
			})
		}
		for _, r := range restingAt(t, program) {
			lie += uint64(r.Tab.Bytes)
			deepest = max(deepest, uint64(r.Tab.Bytes))
		}
		charged, passed := held(t, g).Passed, w.count(t, g, plan.FirstID).Bytes
		if time.Since(begin) > forgotten(t) {
			return false
		}
		if charged+on+lie != passed {
			t.Fatalf("%d bytes are charged, %d on tabs, %d where they rest, of %d that passed", charged, on, lie, passed)
		}
		most = max(most, lie)
	}
	if most == 0 || deepest > w.count(t, g, plan.FirstID).Bytes/uint64(n)/64 {
		t.Errorf("at most %d bytes lay where they rest, %d at one place", most, deepest)
	}
	return true
}

// forgotten is after how long what lies on a tab of one that is silent is not waited for.
func forgotten(t *testing.T) time.Duration {
	t.Helper()
	var tick unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		t.Fatal(err)
	}
	const ticks = 1024
	return ticks * time.Duration(tick.Nano())
}

// TestNoRestAtLimit: a connection whose limit is reached has its packets looked up.
func TestNoRestAtLimit(t *testing.T) {
	w, g := pacedWire(t, 100e6)
	c := w.toSink("tcp4").(*net.TCPConn)
	s := sockets(t, w.room)
	calm := func() uint32 {
		t.Helper()
		var k linkEgressKnown
		descriptor(t, c, func(fd int) {
			if err := s.verdicts.Lookup(uint32(fd), &k); err != nil {
				t.Fatal(err)
			}
		})
		return k.Calm
	}
	for range 10 {
		write(t, c, steady) // 105 ms of the limit
		if bytesOf(t, g, w.link.Index) > 2*steady && calm() != 0 {
			t.Fatal("it may rest while it has all of its limit")
		}
	}
	acknowledged(t, c)
	for end := time.Now().Add(10 * time.Second); calm() == 0; time.Sleep(time.Millisecond) {
		if write(t, c, 1); time.Now().After(end) {
			t.Fatal("it does not rest, though it sends hardly anything")
		}
	}
}

// TestPaceRests: of a connection that may go on pace asks nothing, and of one that is below no limit; and one that comes below a limit is paced.
func TestPaceRests(t *testing.T) {
	w, g := pacedWire(t, 10e9)
	p, err := ebpf.NewProgramFromID(ebpf.ProgramID(programOnCgroup(w.room.pacePin())))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c := w.toSink("tcp4").(*net.TCPConn)
	write(t, c, 1)
	acknowledged(t, c)
	if got := restingAt(t, p); len(got) != 0 {
		t.Fatalf("one that has hardly begun rests: %+v", got)
	}
	for end := time.Now().Add(10 * time.Second); len(restingAt(t, p)) == 0; {
		if write(t, c, 20_000); time.Now().After(end) {
			t.Fatal("it does not rest")
		}
		acknowledged(t, c)
	}
	if err := g.SetLimit(plan.FirstID, plan.Limit{Max: 50e6}); err != nil {
		t.Fatal(err)
	}
	before := bytesOf(t, g, w.link.Index)
	begin := time.Now()
	write(t, c, 3_000_000)
	acknowledged(t, c)
	if rate := float64(bytesOf(t, g, w.link.Index)-before) * 8 / time.Since(begin).Seconds(); rate > 75e6 {
		t.Errorf("%.1f Mbit/s below a limit of 50", rate/1e6)
	}
}
