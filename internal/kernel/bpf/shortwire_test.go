package bpf

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/weir-net/weir/internal/plan"
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
