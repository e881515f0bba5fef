package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
)

var memoryInfo = Info{
	Name:    "tcp-memory",
	Summary: "connections whose peers never read, without and with a bound on TCP memory: what they hold, a neighbour, and what a bound costs",
	Arms:    []string{"alone", "unbounded", "bounded", "rr_off", "rr_on", "rr_granted", "rr_watched", "rr_nested_1000"},
}

// A memoryLab is two hosts with two wires. On the first, a workload stuffs connections over
// the one, to peers that never read, and its neighbour uses the other, a line with a rate.
// And there is a third, which talks to itself.
type memoryLab struct {
	*session
	line, far         hosts.Plug // the neighbour's
	wide, farWide     hosts.Plug // the workload's
	stuffer           *traffic.Worker
	stuffed           string // its cgroup, as /proc/PID/cgroup names it
	deaf              *traffic.Deaf
	sender, asker     *traffic.Worker // the neighbour
	server            *traffic.Server // of it
	toServer, toAsked traffic.Where
	toDeaf            traffic.Where

	loads    []stuffing
	pressure uint64 // of tcp_mem, bytes; 0: not known
	talk     talking
}

// A stuffing is a number of connections, and the bound that is put on them.
type stuffing struct {
	suffix      string // of its metrics
	connections int
	max         policy.Size
	each        uint64 // bytes that are written into each connection at most
	left        string // why there is none on this host
}

// Of 50 connections, the published ones, each has room for a fraction of what TCP wants; of
// 1,000, for little more than a segment.
func stuffings() []stuffing {
	return []stuffing{
		{suffix: "", connections: 50, max: 16 << 20, each: 4 << 20},
		{suffix: "_1000", connections: 1000, max: 128 << 20, each: 640 << 10},
	}
}

// bound is the bound of a stuffing as a policy has it.
func (s stuffing) bound() string { return fmt.Sprintf("{soft: %s, max: %s}", s.max/2, s.max) }

func runMemory(ctx context.Context, s *session) error {
	return (&memoryLab{session: s, loads: stuffings(), talk: newTalking(s.Repetitions)}).run(ctx)
}

func (l *memoryLab) run(ctx context.Context) error {
	if s := l.Scheduler; s != policy.Auto {
		return fmt.Errorf("scheduler %s: a bound on memory has no queue", s)
	}
	if err := l.build(); err != nil {
		return err
	}
	if err := l.fitHost(); err != nil {
		return err
	}
	for repetition := 1; repetition <= l.Repetitions; repetition++ {
		for _, arm := range inTurn(memoryInfo.Arms[:3], repetition) {
			l.progress("repetition %d of %d: %s", repetition, l.Repetitions, arm)
			if err := l.arm(ctx, arm, repetition); err != nil {
				return fmt.Errorf("arm %s: %w", arm, err)
			}
		}
	}
	if err := l.talks(ctx); err != nil {
		return err
	}
	l.conclude()
	return nil
}

// loopbackMTU is what the wire of the stuffed connections carries at once: as over loopback,
// TCP lets buffers grow to megabytes at once that elsewhere need a long path for that.
const loopbackMTU = 65535

func (l *memoryLab) build() error {
	var err error
	if l.line, l.far, err = l.pair(6); err != nil {
		return err
	}
	l.wide, l.farWide = plug(l.line.Host, "wide", "10.99.7.1/24"), plug(l.far.Host, "wide", "10.99.7.2/24")
	err = errors.Join(
		hosts.Wire(l.wide, l.farWide, 40),
		l.wide.SetMTU(loopbackMTU), l.farWide.SetMTU(loopbackMTU),
		l.line.SetLine(plainLine(uint64(l.Rate))),
	)
	if err != nil {
		return err
	}
	l.toServer, l.toAsked, l.toDeaf = l.at(l.far, 5201), l.at(l.farWide, 5201), l.at(l.farWide, 9)
	// At any address: the line's, and the other wire's, where requests wait behind nothing.
	l.server, err = traffic.Serve(l.far.Host.Netns(), netip.AddrPortFrom(netip.IPv4Unspecified(), 5201))
	if l.server, err = closing(l.session, l.server, err); err != nil {
		return err
	}
	l.deaf, err = traffic.OpenDeaf(l.far.Host.Netns(), l.toDeaf.To)
	if l.deaf, err = closing(l.session, l.deaf, err); err != nil {
		return err
	}
	return l.workloads()
}

// workloads makes the cgroups and their processes.
func (l *memoryLab) workloads() error {
	if err := l.workers("stuffed", &l.stuffer); err != nil {
		return err
	}
	if err := l.workers("neighbour", &l.sender, &l.asker); err != nil {
		return err
	}
	var err error
	if l.stuffed, err = cgroupOf(l.stuffer.PID()); err != nil {
		return err
	}
	return l.makeTalks()
}

// workers starts processes in a cgroup of their own.
func (l *memoryLab) workers(name string, all ...**traffic.Worker) error {
	dir, err := makeCgroup(l.Controller.Cgroup(), name)
	if err != nil {
		return err
	}
	l.onClose(func() error { return removeCgroup(dir) })
	for _, worker := range all {
		*worker, err = traffic.StartWorker(l.line.Host.Netns(), dir)
		if *worker, err = closing(l.session, *worker, err); err != nil {
			return err
		}
	}
	return nil
}

// A bounded is a workload with a bound in a policy.
type bounded struct{ name, cgroup, bound string }

// boundPolicy is a policy of nothing but bounds on TCP memory.
func boundPolicy(all ...bounded) string {
	var text strings.Builder
	text.WriteString("version: 1\nworkloads:\n")
	for _, b := range all {
		fmt.Fprintf(&text, "  %s:\n    match: [{cgroup: %q}]\n    tcp-memory: %s\n", b.name, b.cgroup, b.bound)
	}
	return text.String()
}

// apply puts bounds into force.
func (l *memoryLab) apply(ctx context.Context, all ...bounded) error {
	if err := l.Controller.Apply(ctx, l.line.Host.Netns(), []byte(boundPolicy(all...))); err != nil {
		return fmt.Errorf("apply policy of lab: %w", err)
	}
	return nil
}
