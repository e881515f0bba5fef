package bpf

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

const (
	togetherContracts = 10_000
	togetherMost      = 4 // cgroups upon each other
)

// BenchmarkTogether is what all programs of a link take together for a packet that a real socket sends, beyond a program beside them
// that does nothing: with 10,000 contracts that have a limit each, of which the socket's own alone claims it, or
// those of four cgroups upon each other. The limits are not reached.
func BenchmarkTogether(b *testing.B) {
	testutil.Needs(b, "tcx", "BPF atomics", "BPF tail calls")
	for _, network := range []string{"udp4", "tcp4"} {
		for _, limits := range []int{0, 1, togetherMost} {
			b.Run(fmt.Sprintf("%s,limits=%d", network, limits), func(b *testing.B) { benchSent(b, network, limits, false) })
		}
	}
	for _, limits := range []int{0, 1} { // where its socket keeps a shortcut
		b.Run(fmt.Sprintf("udp4,limits=%d,queue=none", limits), func(b *testing.B) { benchSent(b, "udp4", limits, true) })
	}
}

// BenchmarkTogetherReceived is BenchmarkTogether of what a socket receives, by answers that would wait, and of what it answers.
func BenchmarkTogetherReceived(b *testing.B) {
	testutil.Needs(b, "tcx", "BPF atomics", "BPF tail calls")
	for _, network := range []string{"udp4", "tcp4"} {
		for _, limits := range []int{1, togetherMost} {
			b.Run(fmt.Sprintf("%s,limits=%d", network, limits), func(b *testing.B) { benchReceived(b, network, limits) })
		}
	}
}

func benchSent(b *testing.B, network string, limits int, noQueue bool) {
	w := newWire(b)
	rules, l := crowd(togetherContracts, false)
	l.NoQueue = noQueue
	rules.Limits = map[plan.ContractID]plan.Limit{}
	for id, p := range l.Contracts {
		if noQueue {
			p.Priority = plan.Keep
		}
		if p.Limited = limits > 0; p.Limited {
			rules.Limits[id] = plan.Limit{Max: 10e9}
		}
		l.Contracts[id] = p
	}
	dir := claimNested(b, w, &rules, limits)
	g := w.publishTo(rules, l, Options{Cgroups: len(rules.Cgroups), Controller: -1})
	if err := g.AttachPace(); err != nil {
		b.Fatal(err)
	}
	empty := nothing(b, ebpf.SchedCLS, -1)
	var err error
	w.here.Do(func() {
		var beside link.Link
		beside, err = link.AttachTCX(link.TCXOptions{Interface: w.link.Index, Program: empty, Attach: ebpf.AttachTCXEgress})
		if err == nil {
			b.Cleanup(func() { beside.Close() })
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	joinFor(b, w, dir)
	c := w.toSink(network)
	w.stats()
	program, beside := &watched{Program: g.links[w.link.Index].program}, &watched{Program: empty}
	var costs []float64
	inRounds(b, c, func() {
		costs = append(costs, program.since(b).each()-beside.since(b).each())
	})
	reportMiddle(b, costs, "ns/packet")
}

func benchReceived(b *testing.B, network string, limits int) {
	w := newWire(b)
	rules, l := crowd(togetherContracts, false)
	rules.Arriving = map[plan.ContractID]plan.Limit{}
	contracts := map[string]plan.Contract{}
	for id, p := range l.Contracts {
		contracts[fmt.Sprint(id)] = plan.Contract{ID: id, Serial: p.Serial}
		rules.Arriving[id] = plan.Limit{Max: 10e9, Answers: true}
		p.Answers = true
		l.Contracts[id] = p
	}
	dir := claimNested(b, w, &rules, limits)
	from := w.source(network) // of somebody else, who is not below the limits
	g := w.publishReceiving(rules, l, contracts)
	empty := nothing(b, ebpf.CGroupSKB, 1)
	besideIt, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: ebpf.AttachCGroupInetIngress, Program: empty})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { besideIt.Close() })
	joinFor(b, w, dir)
	c := from(w)
	w.stats()
	window, err := ebpf.NewProgramFromID(ebpf.ProgramID(programOnCgroup(w.room.windowPin())))
	if err != nil {
		b.Fatal(err)
	}
	defer window.Close()
	programs := [...]*watched{{Program: g.receive.program}, {Program: g.links[w.link.Index].program}, {Program: window}, {Program: empty}}
	var received, answered []float64
	inRounds(b, c, func() {
		var s [len(programs)]spent
		for i, p := range programs {
			s[i] = p.since(b)
		}
		beside := s[3].each()
		received = append(received, s[0].each()-beside)
		if answers := s[1].runs; answers > 0 {
			answered = append(answered, (s[1].beyond(beside)+s[2].beyond(beside))/answers)
		}
	})
	reportMiddle(b, received, "ns/packet")
	if network == "tcp4" {
		reportMiddle(b, answered, "ns/answer")
	}
}

// claimNested has cgroups upon each other claimed, of as many contracts, and returns the innermost.
func claimNested(b *testing.B, w *wire, rules *plan.Rules, n int) (dir string) {
	b.Helper()
	delete(rules.Users, 0)
	dir = w.room.Cgroup
	for i := range max(n, 1) {
		dir = filepath.Join(dir, "n")
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		made := dir
		b.Cleanup(func() { _ = os.Remove(made) })
		rules.Cgroups[cgroupID(b, dir)] = plan.FirstID + plan.ContractID(i)
	}
	return dir
}

// joinFor has this process be in a cgroup until the benchmark ends.
func joinFor(b *testing.B, w *wire, dir string) {
	b.Helper()
	join(b, dir, os.Getpid())
	b.Cleanup(func() { join(b, filepath.Dir(w.room.Cgroup), os.Getpid()) })
}

// nothing is a program that lets all pass.
func nothing(b *testing.B, kind ebpf.ProgramType, verdict int32) *ebpf.Program {
	b.Helper()
	spec := &ebpf.ProgramSpec{Type: kind, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()}}
	if kind == ebpf.CGroupSKB {
		spec.AttachType = ebpf.AttachCGroupInetIngress
	}
	p, err := ebpf.NewProgram(spec)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	return p
}

// publishReceiving is publishTo of limits of what sockets receive.
func (w *wire) publishReceiving(rules plan.Rules, l plan.LinkRules, contracts map[string]plan.Contract) *Generation {
	w.t.Helper()
	w.number++
	o := Options{Cgroups: len(rules.Cgroups), Controller: -1}
	for id := range l.Contracts {
		o.Highest = max(o.Highest, id)
	}
	g := begin(w.t, w.room, w.number, rules, o)
	load(w.t, g, w.link.Index, rules, l)
	for _, attach := range []func() error{
		func() error { return g.LoadReceive(rules, contracts) },
		func() error { return g.AttachSockets(rules, o) },
		g.AttachReceive,
		g.AttachWindow,
	} {
		if err := attach(); err != nil {
			w.t.Fatal(err)
		}
	}
	w.attach(g)
	return g
}

// source has somebody there send what is written into what is opened from here: a socket of ours, that takes it.
func (w *wire) source(network string) (open func(*wire) net.Conn) {
	w.t.Helper()
	if network == "tcp4" {
		sink := w.listen(w.there, w.to4(0))
		return func(w *wire) net.Conn {
			here := w.dial(w.here, sink.Addr().String())
			there, err := sink.Accept()
			if err != nil {
				w.t.Fatal(err)
			}
			w.t.Cleanup(func() { there.Close() })
			go discard(here)
			return there
		}
	}
	var there *net.UDPConn
	var err error
	w.there.Do(func() { there, err = net.ListenUDP("udp4", &net.UDPAddr{IP: w.far.IPv4.Addr().AsSlice()}) })
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { there.Close() })
	return func(w *wire) net.Conn {
		var here net.Conn
		var err error
		w.here.Do(func() { here, err = net.Dial("udp4", there.LocalAddr().String()) })
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { here.Close() })
		go discard(here)
		return sender{there, here.LocalAddr()}
	}
}

// A sender writes datagrams to one address.
type sender struct {
	*net.UDPConn
	to net.Addr
}

func (s sender) Write(b []byte) (int, error) { return s.WriteTo(b, s.to) }

func discard(c net.Conn) {
	for b := make([]byte, 1<<16); ; {
		if _, err := c.Read(b); err != nil {
			return
		}
	}
}

// A watched program tells what it took since it was asked last.
type watched struct {
	*ebpf.Program
	last ebpf.ProgramStats
}

type spent struct{ ns, runs float64 }

func (w *watched) since(b *testing.B) spent {
	b.Helper()
	s, err := w.Stats()
	if err != nil {
		b.Fatal(err)
	}
	was := w.last
	w.last = *s
	return spent{float64((s.Runtime - was.Runtime).Nanoseconds()), float64(s.RunCount - was.RunCount)}
}

// each is what one run took, ns.
func (s spent) each() float64 { return s.ns / max(s.runs, 1) }

// beyond is what all runs took beyond what runs of nothing would have, ns.
func (s spent) beyond(nothing float64) float64 { return s.ns - s.runs*nothing }

// inRounds sends packets of a byte each in rounds, and looks after each but the first, in which all is cold.
func inRounds(b *testing.B, c net.Conn, look func()) {
	const rounds, round = 41, 2000
	for b.Loop() {
		for range rounds {
			for range round {
				if _, err := c.Write([]byte("x")); err != nil {
					b.Fatal(err)
				}
			}
			look()
		}
	}
}

// reportMiddle reports the median, and the middle half, of what each round but the first one found.
func reportMiddle(b *testing.B, found []float64, unit string) {
	b.Helper()
	found = found[1:]
	slices.Sort(found)
	b.ReportMetric(found[len(found)/2], unit)
	b.ReportMetric(found[len(found)/4], unit+"-low")
	b.ReportMetric(found[len(found)*3/4], unit+"-high")
	b.ReportMetric(0, "ns/op")
}
