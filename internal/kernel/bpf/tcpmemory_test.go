package bpf

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// bounding publishes rules under which a cgroup's sockets may hold so much.
func (w *wire) bounding(dirs map[string]plan.ContractID, bounds map[plan.ContractID]policy.TCPMemory) *Generation {
	w.t.Helper()
	rules := noRules()
	rules.Memory = bounds
	contracts := map[string]plan.Contract{}
	for dir, id := range dirs {
		rules.Cgroups[cgroupID(w.t, dir)] = id
		contracts[dir] = plan.Contract{ID: id, Serial: 1}
	}
	w.number++
	g := begin(w.t, w.room, w.number, rules, bare)
	load(w.t, g, w.link.Index, rules, w.promises())
	o := MemoryOptions{Send: 425984, Receive: 425984}
	if err := errors.Join(g.LoadMemory(rules, contracts, o), g.AttachSockets(rules, bare), g.AttachMemory()); err != nil {
		w.t.Fatal(err)
	}
	w.attach(g)
	_, err := g.SettleMemory(rules, contracts)
	if err := errors.Join(err, w.room.RemoveGeneration(w.number-1)); err != nil {
		w.t.Fatal(err)
	}
	return g
}

// deaf listens at the far end and accepts, and never reads.
func (w *wire) deaf() string {
	w.t.Helper()
	return w.listenFor(w.there, w.to4(0), func(net.Conn) {}).String()
}

var skmem = regexp.MustCompile(`skmem:\(r(\d+),rb\d+,t\d+,tb\d+,f(\d+),w(\d+),`)

// holding is what the TCP sockets of a namespace hold in memory, as ss has it, bytes.
func holding(t testing.TB, ns *testutil.Namespace) (sum uint64) {
	t.Helper()
	for _, m := range skmem.FindAllStringSubmatch(ns.Output("ss", "-Htnm", "state", "all"), -1) {
		for _, bytes := range m[1:] {
			n, err := strconv.ParseUint(bytes, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// bounded is a child whose cgroup has a bound.
func (w *wire) bounded(t *testing.T, bound policy.TCPMemory) (*Generation, *child) {
	t.Helper()
	g := w.bounding(map[string]plan.ContractID{w.room.Cgroup: plan.FirstID}, map[plan.ContractID]policy.TCPMemory{plan.FirstID: bound})
	return g, startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
}

// poolOf is what the sockets of a contract hold, as the programs know it.
func poolOf(t testing.TB, g *Generation, of plan.ContractID) plan.Pool {
	t.Helper()
	all, err := g.Pools(map[string]plan.Contract{"": {ID: of, Serial: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return all[of]
}

// peak is the most that the sockets of the near end hold for a time.
func (w *wire) peak(over time.Duration) (most uint64) {
	w.t.Helper()
	for begin := time.Now(); time.Since(begin) < over; time.Sleep(50 * time.Millisecond) {
		most = max(most, holding(w.t, w.here))
	}
	return most
}

// TestMemoryHolds has connections to peers that never read, whose workload has a bound.
func TestMemoryHolds(t *testing.T) {
	testutil.Proves(t, testutil.Memory)
	testutil.Needs(t, "sock_ops", "BTF", "ss")
	for _, o := range []struct {
		connections int
		bound       policy.TCPMemory
		long        bool
	}{
		{1, policy.TCPMemory{Soft: 128 << 10, Max: 256 << 10}, false},
		{50, policy.TCPMemory{Soft: 4 << 20, Max: 8 << 20}, false},
		{300, policy.TCPMemory{Soft: 16 << 20, Max: 32 << 20}, true},
		{1000, policy.TCPMemory{Soft: 64 << 20, Max: 128 << 20}, true},
	} {
		if testing.Short() && o.long {
			continue
		}
		t.Run(strconv.Itoa(o.connections)+" in "+o.bound.Max.String(), func(t *testing.T) {
			w := newWire(t)
			g, c := w.bounded(t, o.bound)
			c.do("stuff %d %s", o.connections, w.deaf())
			most, p := w.peak(2*time.Second), poolOf(t, g, plan.FirstID)
			t.Logf("%d bytes at most; %+v", most, p)
			if most > uint64(o.bound.Max)*11/10 || p.Most > uint64(o.bound.Max)*11/10 {
				t.Errorf("%d bytes at most, and %+v", most, p)
			}
			if p.Sockets != uint64(o.connections) || p.May < holding(t, w.here)/2 || p.Throttled == 0 {
				t.Errorf("%d connections that hold %d: %+v", o.connections, holding(t, w.here), p)
			}
		})
	}
}

// unbounded is what connections to peers that never read hold where nothing bounds them.
func unbounded(t *testing.T, connections int) uint64 {
	t.Helper()
	w := newWire(t)
	w.bounding(map[string]plan.ContractID{w.room.Cgroup: plan.FirstID}, nil)
	startChild(t, w.here, childOptions{cgroup: w.room.Cgroup}).do("stuff %d %s", connections, w.deaf())
	return w.peak(2 * time.Second)
}

// TestMemoryUnbounded is what TestMemoryHolds would see if nothing held.
func TestMemoryUnbounded(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "ss")
	if most := unbounded(t, 50); most < 10<<20 {
		t.Errorf("50 connections without a bound hold %d bytes: those with one show nothing", most)
	}
}

// TestMemoryLends has one busy connection among a thousand idle ones.
func TestMemoryLends(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "ss")
	alone := unbounded(t, 1)
	w := newWire(t)
	g, c := w.bounded(t, policy.TCPMemory{Soft: 16 << 20, Max: 32 << 20})
	to := w.deaf()
	if got := c.do("connect 1000 %s", to); got != "1000" {
		t.Fatalf("%s of 1000 connections", got)
	}
	idle := poolOf(t, g, plan.FirstID)
	if idle.May > 8<<20 { // half of soft
		t.Errorf("idle connections are kept room for: %+v", idle)
	}
	c.do("stuff 1 %s", to)
	if held := w.peak(2 * time.Second); held < alone/2 {
		t.Errorf("%d bytes held by the one that is busy, and %d without a bound: %+v", held, alone, poolOf(t, g, plan.FirstID))
	}
}

// TestMemoryRefuses opens connections until there is no room.
func TestMemoryRefuses(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "ss")
	bound := policy.TCPMemory{Soft: 1 << 20, Max: 2 << 20, WhenFull: policy.WhenFullRefuse}
	check := func(t *testing.T, got string, g *Generation) {
		t.Helper()
		n, why, _ := strings.Cut(got, " ")
		opened, err := strconv.Atoi(n)
		p := poolOf(t, g, plan.FirstID)
		if err != nil || opened != int(bound.Max)/(148<<10) || why == "" || p.Refused == 0 || p.Sockets != uint64(opened) || p.May > uint64(bound.Max) {
			t.Errorf("opened %s: %+v", got, p)
		}
	}
	// Who is not refused may write, all at once, and be held to no more.
	write := func(t *testing.T, w *wire, g *Generation, c *child) {
		t.Helper()
		c.do("write")
		if most, p := w.peak(time.Second), poolOf(t, g, plan.FirstID); most > uint64(bound.Max) || p.Most > uint64(bound.Max)*11/10 {
			t.Errorf("%d bytes held: %+v", most, p)
		}
	}
	t.Run("its own", func(t *testing.T) {
		w := newWire(t)
		g, c := w.bounded(t, bound)
		check(t, c.do("connect 1000 %s", w.deaf()), g)
		write(t, w, g, c)
	})
	t.Run("others'", func(t *testing.T) {
		w := newWire(t)
		g, c := w.bounded(t, bound)
		at := w.link.IPv4.Addr().String() + ":4001"
		c.do("listen %s", at)
		check(t, startChild(t, w.there, childOptions{}).do("connect 1000 %s", at), g)
		write(t, w, g, c)
	})
	t.Run("squeezed instead", func(t *testing.T) {
		w := newWire(t)
		squeeze := bound
		squeeze.WhenFull = policy.WhenFullSqueeze
		g, c := w.bounded(t, squeeze)
		got := c.do("connect 700 %s", w.deaf())
		if p := poolOf(t, g, plan.FirstID); got != "700" || p.Squeezed == 0 || p.Refused > 0 {
			t.Errorf("opened %s: %+v", got, p)
		}
	})
}

// TestMemoryNests has a workload's bound within that of the one above it.
func TestMemoryNests(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "ss")
	w := newWire(t)
	inner := mkdir(t, w.room.Cgroup, "inner")
	const within, above = plan.FirstID, plan.FirstID + 1
	g := w.bounding(map[string]plan.ContractID{inner: within, w.room.Cgroup: above}, map[plan.ContractID]policy.TCPMemory{
		within: {Soft: 4 << 20, Max: 8 << 20}, above: {Soft: 6 << 20, Max: 12 << 20},
	})
	to := w.deaf()
	for _, dir := range []string{inner, w.room.Cgroup} {
		startChild(t, w.here, childOptions{cgroup: dir}).do("stuff 50 %s", to)
	}
	w.peak(time.Second)
	in, all := poolOf(t, g, within), poolOf(t, g, above)
	if in.Sockets != 50 || all.Sockets != 100 || in.May >= all.May || in.May > 8<<20 || all.May > 12<<20*11/10 {
		t.Errorf("within %+v, above %+v", in, all)
	}
}

// TestMemoryFollows changes what open connections are bounded by, and ends them.
func TestMemoryFollows(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "ss")
	w := newWire(t)
	dirs := map[string]plan.ContractID{w.room.Cgroup: plan.FirstID}
	bound := func(max policy.Size) *Generation {
		bounds := map[plan.ContractID]policy.TCPMemory{}
		if max != 0 {
			bounds[plan.FirstID] = policy.TCPMemory{Soft: max / 2, Max: max}
		}
		return w.bounding(dirs, bounds)
	}
	g := bound(16 << 20)
	c := startChild(t, w.here, childOptions{cgroup: w.room.Cgroup})
	c.do("connect 20 %s", w.deaf())
	if p := poolOf(t, g, plan.FirstID); p.Sockets != 20 || p.May == 0 {
		t.Errorf("at first: %+v", p)
	}
	// What was known of a pool that is gone counts in none that comes after it.
	bound(0)
	g = bound(4 << 20)
	c.do("write")
	w.peak(time.Second)
	p := poolOf(t, g, plan.FirstID)
	if p.Sockets != 20 || p.May == 0 || p.May > 4<<20*11/10 {
		t.Errorf("below another bound: %+v", p)
	}
	if rules, err := g.Rules(); err != nil || rules.Memory[plan.FirstID] != (policy.TCPMemory{Soft: 2 << 20, Max: 4 << 20}) {
		t.Errorf("read back %+v, %v", rules.Memory, err)
	}
	c.do("close")
	for begin := time.Now(); p.Sockets > 0 && time.Since(begin) < 5*time.Second; time.Sleep(50 * time.Millisecond) {
		p = poolOf(t, g, plan.FirstID)
	}
	if p.Sockets != 0 || p.May != 0 {
		t.Errorf("after the last connection: %+v", p)
	}
}

// TestMemoryHoldsWhoAsks has an application ask for buffers of its own.
func TestMemoryHoldsWhoAsks(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "ss")
	w := newWire(t)
	g, c := w.bounded(t, policy.TCPMemory{Soft: 2 << 20, Max: 4 << 20})
	c.do("connect 40 %s", w.deaf())
	c.do("ask 200000")
	c.do("write")
	if most := w.peak(2 * time.Second); most > 4<<20*11/10 {
		t.Errorf("%d bytes held: %+v", most, poolOf(t, g, plan.FirstID))
	}
}

// answering listens at the far end and answers so many bytes of each connection, one at a time;
// then it does not read any more.
func (w *wire) answering(bytes int) string {
	w.t.Helper()
	return w.listenFor(w.there, w.to4(0), func(c net.Conn) {
		go func() {
			b := []byte{0}
			for range bytes {
				if _, err := io.ReadFull(c, b); err != nil {
					return
				}
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		}()
	}).String()
}

// TestMemoryGrants has connections that need little, which nobody watches then. Whatever they
// ask for and write later, they are held to what was set aside for them.
func TestMemoryGrants(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "ss")
	const connections, exchanges = 24, 400
	bound := policy.TCPMemory{Soft: 8 << 20, Max: 16 << 20}
	w := newWire(t)
	g, c := w.bounded(t, bound)
	c.do("connect %d %s", connections, w.answering(exchanges))
	quick, err := strconv.Atoi(c.do("converse %d", exchanges))
	if err != nil {
		t.Fatal(err)
	}
	all, err := read[poolKey, tcpMemoryPool](g.memory.pools)
	if err != nil {
		t.Fatal(err)
	}
	var granted uint64
	for _, p := range all {
		granted = p.Wholes
		if p.Whole > uint64(bound.Soft)/2 || p.Sockets+p.Wholes != connections {
			t.Errorf("%+v", p)
		}
	}
	t.Logf("%d of %d had short round trips, %d were granted what they need: %+v", quick, connections, granted, all)
	if int(granted) < min(quick, 10) {
		t.Errorf("%d of %d had short round trips, %d were granted what they need", quick, connections, granted)
	}
	if granted > 0 {
		t.Run("asks in vain", func(t *testing.T) { asksInVain(t, w, borrowOne(t, c.pid, g.granted)) })
	}
	c.do("ask 2000000")
	c.do("write")
	if most, p := w.peak(2*time.Second), poolOf(t, g, plan.FirstID); most > uint64(bound.Max)*11/10 || p.Most > uint64(bound.Max)*11/10 {
		t.Errorf("%d bytes held: %+v", most, p)
	}
	c.do("close")
	p := poolOf(t, g, plan.FirstID)
	for begin := time.Now(); p.Sockets > 0 && time.Since(begin) < 5*time.Second; time.Sleep(50 * time.Millisecond) {
		p = poolOf(t, g, plan.FirstID)
	}
	if p.Sockets != 0 || p.May != 0 {
		t.Errorf("after the last connection: %+v", p)
	}
}

// granted says whether a connection was granted its buffers.
func (g *Generation) granted(fd int) bool {
	var h tcpMemoryHolding
	return g.memory.holdings.Lookup(uint32(fd), &h) == nil && h.Care == tcpMemoryCareWHOLE
}

// asksInVain asks for larger buffers of a connection that was granted its own.
func asksInVain(t *testing.T, w *wire, fd int) {
	t.Helper()
	for option, force := range map[int]int{unix.SO_SNDBUF: unix.SO_SNDBUFFORCE, unix.SO_RCVBUF: unix.SO_RCVBUFFORCE} {
		was := bufferOf(t, fd, option)
		for _, option := range []int{option, force} {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 300<<10); err != nil {
				t.Fatal(err)
			}
		}
		// Longer than what the kernel shows the program.
		long := make([]byte, 20000)
		binary.NativeEndian.PutUint32(long, 200<<10)
		if err := unix.SetsockoptString(fd, unix.SOL_SOCKET, option, string(long)); err != nil {
			t.Fatal(err)
		}
		if is := bufferOf(t, fd, option); is != was {
			t.Errorf("option %d was %d, and is %d", option, was, is)
		}
	}
	if h, known := sockets(t, w.room).Holding(fd); !known || h.Send.Own != 400<<10 || h.Receive.Own != 400<<10 || !h.Send.Set || !h.Receive.Set {
		t.Errorf("its application gets back %+v", h)
	}
	const soBufLock = 72
	err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, soBufLock, 0)
	if errors.Is(err, unix.ENOPROTOOPT) { // before 5.14
		return
	}
	locks, err2 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soBufLock)
	if err := errors.Join(err, err2); err != nil || locks != sendLock|receiveLock {
		t.Errorf("locks %d, %v", locks, err)
	}
	if h, _ := sockets(t, w.room).Holding(fd); h.Send.Set || h.Receive.Set {
		t.Errorf("TCP gets back %+v", h)
	}
}

// TestMemoryWitness has the kernel itself count what a workload's sockets hold, in each hierarchy
// that it counts in: v1's memory controller tells TCP from all else where a limit was set before
// the first socket, v2's tells sockets, of which the workload has no others.
func TestMemoryWitness(t *testing.T) {
	testutil.Needs(t, "sock_ops", "BTF", "ss")
	const most = 16 << 20
	judge := func(t *testing.T, g *Generation, counted, held uint64) {
		t.Helper()
		t.Logf("the kernel counted %d, ss %d; %+v", counted, held, poolOf(t, g, plan.FirstID))
		if counted > most*11/10 || counted < held/2 {
			t.Errorf("the kernel counted %d bytes, ss %d; the bound is %d", counted, held, most)
		}
	}
	write := func(t *testing.T, path, value string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("v1", func(t *testing.T) {
		v1 := testutil.Cgroup1(t, "memory")
		w := newWire(t)
		g, c := w.bounded(t, policy.TCPMemory{Soft: most / 2, Max: most})
		write(t, filepath.Join(v1, "memory.kmem.tcp.limit_in_bytes"), strconv.Itoa(1<<30))
		write(t, filepath.Join(v1, "cgroup.procs"), strconv.Itoa(c.pid))
		c.do("stuff 150 %s", w.deaf())
		held := w.peak(2 * time.Second)
		text, err := os.ReadFile(filepath.Join(v1, "memory.kmem.tcp.max_usage_in_bytes"))
		if err != nil {
			t.Fatal(err)
		}
		counted, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		judge(t, g, counted, held)
	})
	t.Run("v2", func(t *testing.T) {
		testutil.Needs(t, "v2 memory")
		w := newWire(t)
		control := filepath.Join(filepath.Dir(w.room.Cgroup), "cgroup.subtree_control")
		was, err := os.ReadFile(control)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(strings.Fields(string(was)), "memory") {
			write(t, control, "+memory")
			t.Cleanup(func() { write(t, control, "-memory") })
		}
		g, c := w.bounded(t, policy.TCPMemory{Soft: most / 2, Max: most})
		c.do("stuff 150 %s", w.deaf())
		var held, counted uint64
		for begin := time.Now(); time.Since(begin) < 2*time.Second; time.Sleep(50 * time.Millisecond) {
			held, counted = max(held, holding(t, w.here)), max(counted, socksOf(t, w.room.Cgroup))
		}
		judge(t, g, counted, held)
	})
}

// socksOf is what a cgroup's sockets hold, as v2's memory controller counts it, bytes.
func socksOf(t *testing.T, cgroup string) uint64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cgroup, "memory.stat"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, "sock "); is {
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no sock in %s", text)
	return 0
}
