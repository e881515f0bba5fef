package bpf

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// Most of these run the programs by BPF_PROG_TEST_RUN, which gives the packet a socket
// of uid 0 that stays the same from run to run: its first packet resolves, all
// others meet what is cached. A run is timed as a whole, for the kernel's own
// figure is in whole nanoseconds.

const benchLink = 1 // never attached, so any number will do

// crowd is rules of n workloads, a mix of all kinds, of which the last claims
// uid 0 or, where byHeaders is set, the frame's port.
func crowd(n int, byHeaders bool) (plan.Rules, plan.LinkRules) {
	r := noRules()
	r.Tuples = []plan.Tuple{
		{Fields: plan.FieldAddress, Bits: 96 + 24},
		{Fields: plan.FieldPort | plan.FieldProtocol},
	}
	for i := range n - 1 {
		id := plan.FirstID + plan.ContractID(i)
		switch i % 5 {
		case 0:
			r.Cgroups[1<<40+uint64(i)] = id
		case 1:
			r.Users[1<<20+uint32(i)] = id
		case 2:
			r.Exes[plan.ExeID{Device: 1, Inode: uint64(i)}] = id
		case 3:
			a := netip.AddrFrom4([4]byte{198, 18 + byte(i>>16), byte(i >> 8), byte(i)}).As16()
			r.Flows[plan.FlowKey{Tuple: 0, Family: 4, Address: a}] = id
		case 4:
			r.Flows[plan.FlowKey{Tuple: 1, Protocol: 17, Port: uint16(20000 + i)}] = id
		}
	}
	last := plan.FirstID + plan.ContractID(n-1)
	if byHeaders {
		r.Flows[plan.FlowKey{Tuple: 1, Protocol: 6, Port: 443}] = last
	} else {
		r.Users[0] = last
	}
	return r, promises(n)
}

func benchFrame() []byte {
	return plan.Packet{
		Protocol: 6, Ports: true,
		Source: netip.MustParseAddrPort("192.0.2.1:50000"), Dest: netip.MustParseAddrPort("192.0.2.2:443"),
	}.Frame()
}

// loaded returns link_egress of n workloads.
func loaded(b *testing.B, n int, byHeaders bool) *ebpf.Program {
	b.Helper()
	rules, l := crowd(n, byHeaders)
	g := begin(b, newRoom(b), 1, rules, Options{Cgroups: len(rules.Cgroups), Controller: -1, Highest: plan.FirstID + plan.ContractID(n)})
	load(b, g, benchLink, rules, l)
	p := g.links[benchLink].program
	const warm = 1000
	packets(b, p, benchFrame(), warm)
	counters, err := g.Counters(benchLink)
	if last := plan.FirstID + plan.ContractID(n-1); err != nil || counters[last].Packets != warm {
		b.Fatalf("contract %d has %+v of %d packets (%v)", last, counters[last], warm, err)
	}
	return p
}

// skbContext is the size of struct __sk_buff. Only with one of its own a packet weighs anything on the wire.
const skbContext = 192

// packets runs a program over a frame n times and returns the time of one.
func packets(b *testing.B, p *ebpf.Program, frame []byte, n int) float64 {
	b.Helper()
	const most = 1 << 20 // a run can not be interrupted
	var spent time.Duration
	for left := n; left > 0; left -= most {
		start := time.Now()
		if _, err := p.Run(&ebpf.RunOptions{Data: frame, Repeat: uint32(min(left, most)), Context: make([]byte, skbContext)}); err != nil {
			b.Fatal(err)
		}
		spent += time.Since(start)
	}
	return float64(spent.Nanoseconds()) / float64(n)
}

func report(b *testing.B, ns float64) {
	b.ReportMetric(ns, "ns/packet")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLinkEgress is what a packet of a socket costs that has been resolved:
// resolve, priority and count.
func BenchmarkLinkEgress(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("workloads=%d", n), func(b *testing.B) {
			report(b, packets(b, loaded(b, n, false), benchFrame(), b.N))
		})
	}
}

// BenchmarkLinkEgressHeaders is what a packet costs that is looked at by itself:
// forwarded, or of a UDP socket that a flow rule claims.
func BenchmarkLinkEgressHeaders(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("workloads=%d", n), func(b *testing.B) {
			report(b, packets(b, loaded(b, n, true), benchFrame(), b.N))
		})
	}
}

// BenchmarkClassify is the same by the number of shapes that have to be tried
// before the last one fits.
func BenchmarkClassify(b *testing.B) {
	for _, n := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("tuples=%d", n), func(b *testing.B) {
			rules := noRules()
			for i := range n - 1 {
				rules.Tuples = append(rules.Tuples, plan.Tuple{Fields: plan.FieldAddress | plan.FieldPort, Bits: uint8(128 - i)})
				rules.Flows[plan.FlowKey{Tuple: uint16(i), Family: 6, Port: 1}] = plan.FirstID
			}
			rules.Tuples = append(rules.Tuples, plan.Tuple{Fields: plan.FieldPort | plan.FieldProtocol})
			rules.Flows[plan.FlowKey{Tuple: uint16(n - 1), Protocol: 6, Port: 443}] = plan.FirstID
			p, err := begin(b, newRoom(b), 1, rules, Options{Controller: -1}).loadClassify()
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			report(b, packets(b, p, benchFrame(), b.N))
		})
	}
}

// BenchmarkFlat runs 1 and 10,000 workloads in turn, so that what else the host
// does meets both alike, and gives the ratio of their cost.
func BenchmarkFlat(b *testing.B) {
	const rounds, round = 41, 100_000
	few, many := loaded(b, 1, false), loaded(b, 10_000, false)
	var ratios []float64
	for b.Loop() {
		ratios = ratios[:0]
		for range rounds {
			one := packets(b, few, benchFrame(), round)
			ratios = append(ratios, packets(b, many, benchFrame(), round)/one)
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[rounds/2], "ratio")
	b.ReportMetric(ratios[rounds/4], "ratio-low")
	b.ReportMetric(ratios[rounds*3/4], "ratio-high")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLimit is what a limit adds to a packet of a socket that nobody paces:
// the bucket and the charge. All of the workloads have one, which is not
// reached. Both kinds of program run in turn.
func BenchmarkLimit(b *testing.B) {
	testutil.Needs(b, "BPF atomics")
	frame := plan.Packet{
		Protocol: unix.IPPROTO_UDP, Ports: true,
		Source: netip.MustParseAddrPort("192.0.2.1:50000"), Dest: netip.MustParseAddrPort("192.0.2.2:443"),
	}.Frame()
	for name, limit := range map[string]plan.Limit{"": {Max: 100e9}, "edt,": {Max: 100e9, Departs: true}} {
		for _, n := range []int{1, 10_000} {
			b.Run(fmt.Sprintf("%sworkloads=%d", name, n), func(b *testing.B) {
				const rounds, round = 41, 100_000
				without, with := loaded(b, n, false), loadedWithLimits(b, n, limit)
				var costs []float64
				for b.Loop() {
					costs = costs[:0]
					for range rounds {
						plain := packets(b, without, frame, round)
						costs = append(costs, packets(b, with, frame, round)-plain)
					}
				}
				slices.Sort(costs)
				b.ReportMetric(costs[rounds/2], "ns/packet")
				b.ReportMetric(costs[rounds/4], "ns/packet-low")
				b.ReportMetric(costs[rounds*3/4], "ns/packet-high")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkBounds is what each further limit adds to a packet that nobody paces: the
// program that holds packets alone, with one limit to the most that can meet.
func BenchmarkBounds(b *testing.B) {
	testutil.Needs(b, "BPF atomics")
	const most = 18
	rules, l := noRules(), promises(12)
	limit, both := plan.Limit{Max: 100e9}, plan.Limit{Max: 100e9, PPS: policy.MaxPPS}
	rules.Limits = map[plan.ContractID]plan.Limit{}
	for i := range plan.ContractID(12) {
		id := plan.FirstID + i
		p := l.Contracts[id]
		p.Limited = true
		switch rules.Limits[id] = limit; i / 4 {
		case 1:
			p.Here = limit
		case 2:
			rules.Limits[id], p.Here = both, both
		}
		l.Contracts[id] = p
	}
	l.Egress = both
	g := begin(b, newRoom(b), 1, rules, Options{Controller: -1, LinkLimits: 20})
	load(b, g, benchLink, rules, l)
	own, err := g.ownBudgets(plan.OwnEgress, benchLink, l.Egress)
	if err != nil {
		b.Fatal(err)
	}
	spec, err := copied(parseLimit)
	if err != nil {
		b.Fatal(err)
	}
	var programs limitPrograms
	if err := spec.LoadAndAssign(&programs, g.shared(spec)); err != nil {
		b.Fatal(err)
	}
	defer programs.Close()
	frame := plan.Packet{
		Protocol: unix.IPPROTO_UDP, Ports: true,
		Source: netip.MustParseAddrPort("192.0.2.1:50000"), Dest: netip.MustParseAddrPort("192.0.2.2:443"),
	}.Frame()
	// A packet of n contracts, of which the first has a number, and of a link's own
	// limits, as link_egress hands it on.
	handed := func(first plan.ContractID, n int, own uint32) ebpf.RunOptions {
		const cb, size = 48, 192 // in struct __sk_buff
		context := make([]byte, size)
		put := func(word int, value uint32) { binary.NativeEndian.PutUint32(context[cb+4*word:], value) }
		put(0, uint32(linkEgressLinkNumberFIRST_LINK))
		put(1, own)
		var ids [4]uint32
		for i := range n {
			ids[i] = uint32(first) + uint32(i)
		}
		put(2, ids[0])
		put(3, ids[1]|ids[2]<<16)
		put(4, ids[3])
		return ebpf.RunOptions{Data: frame, Repeat: 100_000, Context: context}
	}
	below := func(n int) ebpf.RunOptions {
		switch n {
		case 9:
			return handed(plan.FirstID+4, 4, own&0xffff)
		case most:
			return handed(plan.FirstID+8, 4, own)
		}
		return handed(plan.FirstID, n, 0)
	}
	counts := []int{0, 1, 4, 9, most}
	for b.Loop() {
		costs := map[int][]float64{}
		for range 41 {
			for _, n := range counts {
				o := below(n)
				start := time.Now()
				if _, err := programs.Limit.Run(&o); err != nil {
					b.Fatal(err)
				}
				costs[n] = append(costs[n], float64(time.Since(start).Nanoseconds())/float64(o.Repeat))
			}
		}
		for _, n := range counts {
			slices.Sort(costs[n])
			b.ReportMetric(costs[n][20], fmt.Sprintf("ns/below-%d", n))
		}
	}
	b.ReportMetric(0, "ns/op")
}

// loadedWithLimits is loaded with a limit for each workload.
func loadedWithLimits(b *testing.B, n int, limit plan.Limit) *ebpf.Program {
	b.Helper()
	rules, l := crowd(n, false)
	rules.Limits = map[plan.ContractID]plan.Limit{}
	for i := range n {
		id := plan.FirstID + plan.ContractID(i)
		rules.Limits[id] = limit
		p := l.Contracts[id]
		p.Limited = true
		l.Contracts[id] = p
	}
	g := begin(b, newRoom(b), 1, rules, Options{Cgroups: len(rules.Cgroups), Controller: -1, Highest: plan.FirstID + plan.ContractID(n)})
	load(b, g, benchLink, rules, l)
	return g.links[benchLink].program
}

// BenchmarkReadBack is the kernel's part of an apply that changes nothing.
func BenchmarkReadBack(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("workloads=%d", n), func(b *testing.B) {
			room := newRoom(b)
			rules, l := crowd(n, false)
			load(b, begin(b, room, 1, rules, Options{Cgroups: len(rules.Cgroups), Controller: -1, Highest: plan.FirstID + plan.ContractID(n)}), benchLink, rules, l)
			for b.Loop() {
				g, err := room.Open(1)
				if err != nil {
					b.Fatal(err)
				}
				_, err = g.Rules()
				_, err2 := g.Promises(benchLink)
				if g.Close(); err != nil || err2 != nil {
					b.Fatal(err, err2)
				}
			}
		})
	}
}

// BenchmarkPublish makes, fills and loads a generation.
func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("workloads=%d", n), func(b *testing.B) {
			room := newRoom(b)
			rules, l := crowd(n, false)
			for b.Loop() {
				g := begin(b, room, 1, rules, Options{Cgroups: len(rules.Cgroups), Controller: -1, Highest: plan.FirstID + plan.ContractID(n)})
				load(b, g, benchLink, rules, l)
				if err := room.RemoveGeneration(1); err != nil {
					b.Fatal(err)
				}
				g.Close()
			}
		})
	}
}

// BenchmarkTraffic is what bpf_stats says of real packets of one socket, without a limit and
// below one that is not reached; the kernel's two clock reads a run are in it.
func BenchmarkTraffic(b *testing.B) {
	testutil.Needs(b, "tcx", "BPF atomics")
	for _, network := range []string{"udp4", "tcp4"} {
		for name, limit := range map[string]policy.Rate{"": 0, ",limit": 10e9} {
			b.Run(network+name, func(b *testing.B) { benchTraffic(b, network, noRules(), limit) })
			b.Run(network+",headers"+name, func(b *testing.B) { benchTraffic(b, network, ports(4000), limit) })
		}
	}
}

// benchTraffic sends packets that the rules claim by their headers, or else by their user.
func benchTraffic(b *testing.B, network string, rules plan.Rules, max policy.Rate) {
	w := newWire(b)
	if len(rules.Flows) == 0 {
		rules.Users[0] = plan.FirstID
	}
	promises := w.promises()
	if max != 0 {
		limit(&rules, &promises, map[plan.Owner]policy.Rate{{Contract: plan.FirstID}: max})
	}
	g := w.publishTo(rules, promises, bare)
	join(b, w.room.Cgroup, os.Getpid())
	b.Cleanup(func() { join(b, filepath.Dir(w.room.Cgroup), os.Getpid()) })
	if err := g.AttachPace(); err != nil {
		b.Fatal(err)
	}
	c := w.toSink(network)
	stats := w.stats()
	for b.Loop() {
		if _, err := c.Write([]byte("x")); err != nil {
			b.Fatal(err)
		}
	}
	report(b, stats(g.links[w.link.Index].program))
}

// toSink opens a socket from here to there, where somebody takes what it sends.
func (w *wire) toSink(network string) net.Conn {
	w.t.Helper()
	if network == "tcp4" {
		w.listenFor(w.there, w.to4(4000), discardAll)
	}
	var c net.Conn
	var err error
	w.here.Do(func() { c, err = net.Dial(network, w.to4(4000)) })
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

// BenchmarkProcess is what following tasks costs a process from fork to exit.
func BenchmarkProcess(b *testing.B) {
	room := newRoom(b)
	testutil.Needs(b, "raw_tracepoint", "BTF")
	o := bare
	o.Births = true
	g := begin(b, room, 1, noRules(), o)
	w := &wire{t: b}
	stats := w.stats()
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
	for _, l := range g.births {
		info, err := l.Info()
		if err != nil {
			b.Fatal(err)
		}
		p, err := ebpf.NewProgramFromID(info.Program)
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close()
		if about, err := p.Info(); err == nil && strings.HasPrefix(about.Name, "task_") {
			b.ReportMetric(stats(p), "ns/"+about.Name)
		}
	}
}

// stats has the kernel measure programs from now on, until the benchmark ends
// (the descriptor is closed, and the sysctl is as it was).
func (w *wire) stats() (nanoseconds func(*ebpf.Program) float64) {
	w.t.Helper()
	on, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { on.Close() })
	return func(p *ebpf.Program) float64 {
		s, err := p.Stats()
		if err != nil || s.RunCount == 0 {
			w.t.Fatalf("no statistics of %s: %v", p, err)
		}
		return float64(s.Runtime.Nanoseconds()) / float64(s.RunCount)
	}
}
