package bpf

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
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

// restingIn is of how many connections a program notes that they rest, or did, and of which contract.
func restingIn(t *testing.T, p *ebpf.Program) map[plan.ContractID]int {
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
		n := map[plan.ContractID]int{}
		var place uint32
		var each []linkEgressResting
		for all := m.Iterate(); all.Next(&place, &each); {
			for _, r := range each {
				if r.Socket != 0 {
					n[plan.ContractID(r.Contract)]++
				}
			}
		}
		return n
	}
	t.Fatal("the program notes of nobody that it rests")
	return nil
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
