package bpf

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// A wire is two hosts on a veth pair. On the link of the first, an HTB with a
// class for every contract shows what was written into the packets.
type wire struct {
	t           testing.TB
	room        Room
	here, there *testutil.Namespace
	link, far   testutil.End
	number      uint32
}

// Classes of the wire: contract FirstID+n goes to class firstClass+n, what nobody
// claims to the class of its ladder or, from priority 16 on, to otherClass.
const (
	firstClass        = 0x10
	unclaimedClass    = 0x1e
	unclassifiedClass = 0x1f
	ladderClass       = 0x20
	otherClass        = 0x40
)

func newWire(t testing.TB) *wire {
	t.Helper()
	testutil.Needs(t, "htb qdisc", "tc")
	w := &wire{t: t, room: newRoom(t), here: testutil.NewNamespace(t), there: testutil.NewNamespace(t)}
	w.link, w.far = testutil.Veth(t, w.here, w.there, testutil.VethOptions{})
	w.sink(4000)
	var script strings.Builder
	fmt.Fprintf(&script, "qdisc add dev %s root handle %x: htb default %x\n", w.link.Name, plan.RootHandle, otherClass)
	for c := firstClass; c <= otherClass; c++ {
		fmt.Fprintf(&script, "class add dev %s parent %x: classid %x:%x htb rate 1gbit\n", w.link.Name, plan.RootHandle, plan.RootHandle, c)
	}
	w.here.Output("sh", "-c", "tc -batch - <<'E'\n"+script.String()+"E")
	return w
}

// sink takes datagrams at a port of the far end, so that nobody is refused.
func (w *wire) sink(port int) {
	w.t.Helper()
	var c net.PacketConn
	var err error
	w.there.Do(func() { c, err = net.ListenPacket("udp", fmt.Sprintf(":%d", port)) })
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
}

func class(n int) uint32 { return plan.RootHandle<<16 | uint32(n) }

// promises sends contract FirstID+i to class firstClass+i, for i below 8.
func (w *wire) promises() plan.LinkRules {
	r := promises(8)
	for i := range plan.ContractID(8) {
		r.Contracts[plan.FirstID+i] = plan.Promise{Priority: class(firstClass + int(i)), Serial: 1}
	}
	for p := range plan.ContractID(16) {
		r.Contracts[plan.LadderID+p] = plan.Promise{Priority: class(ladderClass + int(p))}
	}
	r.Contracts[plan.Unclassified] = plan.Promise{Priority: class(unclassifiedClass)}
	return r
}

// publish makes rules the ones in force, in a generation of their own.
func (w *wire) publish(rules plan.Rules, o Options) *Generation {
	w.t.Helper()
	return w.publishTo(rules, w.promises(), o)
}

func (w *wire) publishTo(rules plan.Rules, l plan.LinkRules, o Options) *Generation {
	w.t.Helper()
	w.number++
	for id := range l.Contracts {
		o.Highest = max(o.Highest, id)
	}
	g := begin(w.t, w.room, w.number, rules, o)
	load(w.t, g, w.link.Index, rules, l)
	if err := g.AttachSockets(rules, o); err != nil {
		w.t.Fatal(err)
	}
	w.attach(g)
	if err := g.SettleLimits(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.room.RemoveGeneration(w.number - 1); err != nil {
		w.t.Fatal(err)
	}
	return g
}

// forgetLimits ends all limits, so that the same ones begin anew.
func (w *wire) forgetLimits() {
	w.t.Helper()
	if w.number == 0 {
		return
	}
	g, err := w.room.Open(w.number)
	if err != nil {
		w.t.Fatal(err)
	}
	defer g.Close()
	if err := g.SettleLimits(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) hasTCX() bool {
	ok, err := feature.Has("tcx")
	return err == nil && ok
}

func (w *wire) attach(g *Generation) {
	w.t.Helper()
	w.attachTo(g, w.link)
}

// attachTo uses tcx, or a filter of tc's where the kernel has none (before 6.6).
func (w *wire) attachTo(g *Generation, link testutil.End) {
	w.t.Helper()
	if !w.hasTCX() {
		testutil.By(w.t, "cls_bpf")
		testutil.Needs(w.t, "clsact qdisc", "bpf classifier")
		w.here.Output("tc", "qdisc", "replace", "dev", link.Name, "clsact")
		w.here.Output("tc", "filter", "replace", "dev", link.Name, "egress", "prio", "1", "handle", "1",
			"bpf", "direct-action", "object-pinned", filepath.Join(g.linkDir(link.Index), programPin))
		return
	}
	testutil.By(w.t, "tcx")
	var err error
	w.here.Do(func() { err = g.AttachLink(link.Index) })
	if err != nil {
		w.t.Fatal(err)
	}
}

var classLine = regexp.MustCompile(`class htb 7e1f:([0-9a-f]+) .*\n Sent \d+ bytes (\d+) pkt`)

// sent reads packets by class, as tc has counted them.
func (w *wire) sent() map[int]int {
	w.t.Helper()
	out := w.here.Output("tc", "-s", "class", "show", "dev", w.link.Name)
	counts := map[int]int{}
	for _, m := range classLine.FindAllStringSubmatch(out, -1) {
		c, _ := strconv.ParseInt(m[1], 16, 32)
		n, _ := strconv.Atoi(m[2])
		if n > 0 {
			counts[int(c)] = n
		}
	}
	return counts
}

// expect runs act, which sends at least n packets that belong in a class, and
// none that belong in those of other contracts.
func (w *wire) expect(class, n int, act func()) {
	w.t.Helper()
	w.send(class, n, true, act)
}

// send is expect where the kernel's own packets (neighbours, multicast groups) may
// be under another contract if alone is not set.
func (w *wire) send(class, n int, alone bool, act func()) {
	w.t.Helper()
	before := w.sent()
	act()
	deadline := time.Now().Add(3 * time.Second)
	for {
		now := w.sent()
		for c := range now {
			now[c] -= before[c]
			contract := c >= firstClass && c < firstClass+8 || c == unclassifiedClass
			if alone && contract && c != class && now[c] > 0 {
				w.t.Fatalf("%d packets in class %#x, want all in %#x: %v", now[c], c, class, now)
			}
		}
		if now[class] >= n {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d packets in class %#x, want %d: %v", now[class], class, n, now)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// insist does what sends a packet of a class again and again until that is done which it is to do. Below a limit of its own
// what the kernel sends by itself may have taken its place, or have paid for it before.
func (w *wire) insist(class int, act func(), done func() bool) {
	w.t.Helper()
	first := w.sent()[class]
	for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		before := w.sent()
		act()
		for c, n := range w.sent() {
			if contract := c >= firstClass && c < firstClass+8 || c == unclassifiedClass; contract && c != class && n > before[c] {
				w.t.Fatalf("%d packets in class %#x, want all in %#x", n-before[c], c, class)
			}
		}
		arrived := w.sent()[class] > first
		if arrived && done() {
			return
		}
		if time.Now().After(deadline) {
			if !arrived {
				w.t.Fatalf("no packet in class %#x", class)
			}
			return // what else is missing the caller says
		}
	}
}

// quiet waits until nothing is sent any more: MPTCP closes and acknowledges in a
// work queue of its own.
func (w *wire) quiet() {
	last := w.sent()
	for range 50 {
		time.Sleep(60 * time.Millisecond)
		now := w.sent()
		if maps.Equal(now, last) {
			return
		}
		last = now
	}
}

// udp sends a datagram from a new socket of this process; prepare may be nil.
func (w *wire) udp(network, to string, prepare func(*net.UDPConn)) {
	w.t.Helper()
	var err error
	w.here.Do(func() {
		var c net.Conn
		if c, err = net.Dial(network, to); err != nil {
			return
		}
		defer c.Close()
		if prepare != nil {
			prepare(c.(*net.UDPConn))
		}
		_, err = c.Write([]byte("x"))
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// to4 and to6 are the far end's addresses with a port.
func (w *wire) to4(port int) string { return fmt.Sprintf("%s:%d", w.far.IPv4.Addr(), port) }

func (w *wire) to6(port int) string { return fmt.Sprintf("[%s]:%d", w.far.IPv6.Addr(), port) }

// listen listens on one side.
func (w *wire) listen(ns *testutil.Namespace, address string) net.Listener {
	w.t.Helper()
	var l net.Listener
	var err error
	ns.Do(func() { l, err = net.Listen("tcp", address) })
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { l.Close() })
	return l
}

// listenFor listens on one side, and has each connection taken in turn.
func (w *wire) listenFor(ns *testutil.Namespace, address string, take func(net.Conn)) net.Addr {
	w.t.Helper()
	l := w.listen(ns, address)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.t.Cleanup(func() { c.Close() })
			take(c)
		}
	}()
	return l.Addr()
}

// discardAll takes what a connection brings until it ends.
func discardAll(c net.Conn) {
	_, _ = io.Copy(io.Discard, c)
	c.Close()
}

func (w *wire) dial(ns *testutil.Namespace, address string) *net.TCPConn {
	w.t.Helper()
	var c net.Conn
	var err error
	ns.Do(func() {
		c, err = (&net.Dialer{Timeout: 3 * time.Second}).DialContext(context.Background(), "tcp", address)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// flowRules claims flows, each under the contract at its place.
func flowRules(tuples []plan.Tuple, keys ...plan.FlowKey) plan.Rules {
	r := noRules()
	r.Tuples = tuples
	for i, k := range keys {
		r.Flows[k] = plan.FirstID + plan.ContractID(i)
	}
	return r
}

// ports claims a destination or source port per contract, any protocol.
func ports(all ...uint16) plan.Rules {
	var keys []plan.FlowKey
	for _, p := range all {
		keys = append(keys, plan.FlowKey{Port: p})
	}
	return flowRules([]plan.Tuple{{Fields: plan.FieldPort}}, keys...)
}

var bare = Options{Controller: -1}

// descriptor lends a socket's descriptor.
func descriptor(t testing.TB, c syscall.Conn, fn func(fd int)) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { fn(int(fd)) }); err != nil {
		t.Fatal(err)
	}
}
