package bpf

import (
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// A shortWire is a wire without a queue of ours, which gives the packets of this process' cgroup the priority of contract
// FirstID, and on which a program behind link_egress counts packets by their priorities.
type shortWire struct {
	*wire
	sockets *Sockets
	seen    *ebpf.Map
}

func newShortWire(t *testing.T) *shortWire {
	t.Helper()
	testutil.Needs(t, "clsact qdisc", "bpf classifier")
	w := &shortWire{wire: newWire(t)}
	w.seen = w.watch(w.link)
	join(t, w.room.Cgroup, os.Getpid())
	t.Cleanup(func() { join(t, filepath.Dir(w.room.Cgroup), os.Getpid()) })
	return w
}

// rules are those of the wire, where its cgroup is contract FirstID and has a priority.
func (w *shortWire) rules(priority uint32) (plan.Rules, plan.LinkRules) {
	w.t.Helper()
	rules, l := noRules(), promises(1)
	rules.Cgroups[cgroupID(w.t, w.room.Cgroup)] = plan.FirstID
	l.NoQueue = true
	l.Contracts[plan.FirstID] = plan.Promise{Priority: priority, Serial: 1}
	return rules, l
}

// force makes rules the ones in force, and says where sockets keep what is known of them.
func (w *shortWire) force(rules plan.Rules, l plan.LinkRules) *Generation {
	w.t.Helper()
	g := w.publishTo(rules, l, Options{Controller: -1, Cgroups: len(rules.Cgroups), LinkLimits: 1})
	if w.sockets == nil {
		s, err := w.room.Sockets()
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { s.Close() })
		w.sockets = s
	}
	return g
}

// priorities is how many priorities are counted, the last for all above.
const priorities = 32

// watch counts the packets of a link by their priority, behind link_egress.
func (w *shortWire) watch(at testutil.End) *ebpf.Map {
	w.t.Helper()
	seen, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: priorities})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { seen.Close() })
	const priority = 32 // in struct __sk_buff
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, priority, asm.Word),
		asm.JLT.Imm(asm.R2, priorities, "counted"),
		asm.Mov.Imm(asm.R2, priorities-1),
		asm.StoreMem(asm.RFP, -4, asm.R2, asm.Word).WithSymbol("counted"),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, seen.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "done"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, -1).WithSymbol("done"), // the next program
		asm.Return(),
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	defer p.Close()
	pinned := filepath.Join(filepath.Dir(w.room.Dir), "watch_"+at.Name)
	if err := p.Pin(pinned); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { os.Remove(pinned) })
	w.here.Output("tc", "qdisc", "replace", "dev", at.Name, "clsact")
	w.here.Output("tc", "filter", "add", "dev", at.Name, "egress", "prio", "9", "handle", "1",
		"bpf", "direct-action", "object-pinned", pinned)
	return seen
}

// passed is how many packets of a priority passed.
func (w *shortWire) passed(seen *ebpf.Map, priority uint32) (packets uint64) {
	w.t.Helper()
	if err := seen.Lookup(priority, &packets); err != nil {
		w.t.Fatal(err)
	}
	return packets
}

// socket is a socket of this process.
func (w *shortWire) socket() *net.UDPConn {
	w.t.Helper()
	var c *net.UDPConn
	var err error
	w.here.Do(func() { c, err = net.ListenUDP("udp4", nil) })
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

// datagrams sends n datagrams to an end, which are to leave with a priority.
func (w *shortWire) datagrams(c *net.UDPConn, to testutil.End, seen *ebpf.Map, n int, priority uint32) {
	w.t.Helper()
	before := w.passed(seen, priority)
	for range n {
		if _, err := c.WriteToUDP([]byte("x"), &net.UDPAddr{IP: to.IPv4.Addr().AsSlice(), Port: 4000}); err != nil {
			w.t.Fatal(err)
		}
	}
	if got := w.passed(seen, priority) - before; got != uint64(n) {
		w.t.Fatalf("%d of %d datagrams had priority %d", got, n, priority)
	}
}

// shortcut is what a socket keeps as one.
func (w *shortWire) shortcut(t *testing.T, c *net.UDPConn) (bits uint64) {
	t.Helper()
	descriptor(t, c, func(fd int) {
		var k linkEgressKnown
		if err := w.sockets.verdicts.Lookup(uint32(fd), &k); err != nil {
			t.Fatal(err)
		}
		bits = k.Tab.Ends
	})
	return bits
}

// TestShortcut: what a socket keeps of its contract is what the contract says, whatever that is changed to, and its
// packets are counted.
func TestShortcut(t *testing.T) {
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
	first := w.shortcut(t, c)
	if first == 0 {
		t.Fatal("the socket keeps no shortcut")
	}
	send(5, 3)
	if w.shortcut(t, c) != first {
		t.Error("a shortcut that holds is found anew")
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
	for _, priority := range []uint32{31, 1000} { // of these it can keep none
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

// TestShortcutCutOff: no shortcut holds in the midst of a change, nor after one that was cut off there; and the next generation's do.
func TestShortcutCutOff(t *testing.T) {
	w := newShortWire(t)
	rules, l := w.rules(3)
	g := w.force(rules, l)
	c := w.socket()
	w.datagrams(c, w.far, w.seen, 3, 3)
	links, err := g.openLink(w.link.Index)
	if err != nil {
		t.Fatal(err)
	}
	before := w.shortcut(t, c)
	change := func() error {
		err := links.contracts.Put(uint32(plan.FirstID), linkEgressContract{Priority: 4, Serial: 1})
		w.datagrams(c, w.far, w.seen, 3, 4)
		if got := w.shortcut(t, c); got != before {
			t.Errorf("a socket found a shortcut where there are none: %#x, before %#x", got, before)
		}
		return err
	}
	if err := g.edit(links, change); err != nil {
		t.Fatal(err)
	}
	w.datagrams(c, w.far, w.seen, 3, 4)
	if before = w.shortcut(t, c); before == 0 {
		t.Error("a socket keeps no shortcut after a change")
	}
	// One is cut off.
	if err := errors.Join(links.edition.Put(uint32(0), linkEgressEditionNO_EDITION), change()); err != nil {
		t.Fatal(err)
	}
	if err := g.SetPromise(w.link.Index, plan.FirstID, plan.Promise{Priority: 5, Serial: 1}); err != nil {
		t.Fatal(err)
	}
	w.datagrams(c, w.far, w.seen, 3, 5)
	if got := w.shortcut(t, c); got != before {
		t.Errorf("a socket found a shortcut before the next generation: %#x, before %#x", got, before)
	}
	w.force(rules, l)
	w.datagrams(c, w.far, w.seen, 3, 3)
	if w.shortcut(t, c) == before {
		t.Error("a socket finds no shortcut in the generation after that")
	}
}

// TestShortcutOfLinks: one socket's packets get by each of two links what that says.
func TestShortcutOfLinks(t *testing.T) {
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

// TestShortcutLimited: what goes by a shortcut is charged to the one limit that it may be below, until it is below
// none.
func TestShortcutLimited(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newShortWire(t)
	rules, l := w.rules(3)
	of := plan.Owner{Contract: plan.FirstID}
	limit(&rules, &l, map[plan.Owner]policy.Rate{of: 1e9})
	g := w.force(rules, l)
	c := w.socket()
	const size = 14 + 20 + 8 + 1
	for range 50 {
		w.datagrams(c, w.far, w.seen, 7, 3)
		charged := held(t, g).Passed - givenAhead(t, g, numberFor(t, g, of))
		if passed := w.count(t, g, plan.FirstID); charged != passed.Bytes || passed.Bytes != size*passed.Packets {
			t.Fatalf("%d bytes are charged, and %+v passed", charged, passed)
		}
	}
	if w.shortcut(t, c) == 0 {
		t.Error("a socket below one limit keeps no shortcut")
	}
	charged := held(t, g).Passed
	if err := g.SetPromise(w.link.Index, plan.FirstID, plan.Promise{Priority: 5, Serial: 1}); err != nil {
		t.Fatal(err)
	}
	ahead := givenAhead(t, g, numberFor(t, g, of))
	w.datagrams(c, w.far, w.seen, 7, 5)
	if held(t, g).Passed != charged || givenAhead(t, g, numberFor(t, g, of)) != ahead {
		t.Error("a packet is charged to a limit that its contract has no more")
	}
}

// TestShortcutOfNone: where more has to be known of each packet its socket keeps no shortcut.
func TestShortcutOfNone(t *testing.T) {
	limitOf := func(of plan.Owner) func(*shortWire, *plan.Rules, *plan.LinkRules) {
		return func(w *shortWire, r *plan.Rules, l *plan.LinkRules) {
			if of.Link != 0 {
				of.Link = w.link.Index
			}
			limit(r, l, map[plan.Owner]policy.Rate{of: 1e9})
		}
	}
	for name, change := range map[string]func(*shortWire, *plan.Rules, *plan.LinkRules){
		"a queue of ours":  func(_ *shortWire, _ *plan.Rules, l *plan.LinkRules) { l.NoQueue = false },
		"a link's own":     limitOf(plan.Owner{Contract: plan.OwnEgress, Link: 1}),
		"a limit there":    limitOf(plan.Owner{Contract: plan.FirstID, Link: 1}),
		"one of packets":   limitOf(plan.Owner{Contract: plan.FirstID, Packets: true}),
		"rules by headers": func(_ *shortWire, r *plan.Rules, _ *plan.LinkRules) { *r = ports(4000) },
		"a limit further up": func(w *shortWire, r *plan.Rules, l *plan.LinkRules) {
			r.Cgroups[cgroupID(t, filepath.Dir(w.room.Cgroup))] = plan.FirstID + 1
			l.Contracts[plan.FirstID+1] = plan.Promise{Priority: 4, Serial: 1}
			limit(r, l, map[plan.Owner]policy.Rate{{Contract: plan.FirstID + 1}: 1e9})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newShortWire(t)
			rules, l := w.rules(3)
			if change(w, &rules, &l); len(rules.Limits) > 0 || l.Egress != (plan.Limit{}) || l.Contracts[plan.FirstID].Here != (plan.Limit{}) {
				testutil.Needs(t, "BPF atomics", "BPF tail calls")
			}
			w.force(rules, l)
			c := w.socket()
			w.datagrams(c, w.far, w.seen, 5, 3)
			if got := w.shortcut(t, c); got != 0 {
				t.Errorf("its socket keeps %#x", got)
			}
		})
	}
}

// TestEditions: no two are the same, and none is the one that stands for none.
func TestEditions(t *testing.T) {
	room := newRoom(t)
	g := begin(t, room, 1, noRules(), bare)
	l := promises(1)
	l.NoQueue = true
	load(t, g, 3, noRules(), l)
	load(t, g, 4, noRules(), l)
	edition := func(index int) (e linkEgressEdition) {
		t.Helper()
		if err := g.links[index].edition.Lookup(uint32(0), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	if edition(3) == edition(4) {
		t.Errorf("two links have edition %d", edition(3))
	}
	const step = 1 << linkEgressEditionEDITION_SHIFT
	last := linkEgressEdition(math.MaxUint32 &^ (step - 1))
	if err := g.memory.editions.Put(uint32(0), last-step); err != nil {
		t.Fatal(err)
	}
	for _, want := range []linkEgressEdition{last, linkEgressEditionFIRST_EDITION, linkEgressEditionFIRST_EDITION + step} {
		if err := g.SetPromise(3, plan.FirstID, plan.Promise{Priority: 1, Serial: 1}); err != nil {
			t.Fatal(err)
		}
		if got := edition(3); got != want {
			t.Errorf("edition %#x, want %#x", got, want)
		}
	}
}
