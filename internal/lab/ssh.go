package lab

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
)

var sshInfo = Info{
	Name:    "ssh",
	Summary: "a file copy to port 22 through a router: alone, on a full line, with priority",
	Arms:    []string{"alone", "full", "prioritised"},
}

// The ssh lab's copy lasts about copySeconds on the empty line. A longer one
// would say the same; a shorter one would measure how TCP starts.
const copySeconds = 1.4

// payload is the part of a full Ethernet frame that is TCP's payload, with its
// timestamps option: 1448 of 1514 bytes.
const payload = 1448.0 / 1514

// lead is how much of the rival is recorded before and after the copy.
const lead = 300 * time.Millisecond

// An sshLab is three hosts: client, router and server. The router's egress
// towards the server is the bottleneck.
type sshLab struct {
	*session
	line       hosts.Line
	bottleneck hosts.Plug
	server     *hosts.Host
	ssh, rival *traffic.Server
	toSSH      traffic.Where
	toRival    traffic.Where
	before     []float64 // rival's rate just before each copy, Mbit/s
	counters   []ClassCount
}

func runSSH(ctx context.Context, s *session) error {
	l := &sshLab{session: s, line: plainLine(uint64(s.Rate))}
	if err := l.build(); err != nil {
		return err
	}
	s.result.Environment.Bottleneck = l.line.String()
	s.result.Environment.Policy = l.policy()
	for repetition := 1; repetition <= s.Repetitions; repetition++ {
		for _, arm := range sshInfo.Arms {
			s.progress("repetition %d of %d: %s", repetition, s.Repetitions, arm)
			if err := l.arm(ctx, arm, repetition); err != nil {
				return fmt.Errorf("arm %s: %w", arm, err)
			}
		}
	}
	l.conclude()
	return nil
}

// plainLine is an ordinary line of a rate. Its FIFO holds 5 ms at 100 Mbit/s,
// some forty packets; at other rates the time shrinks with the square root of
// the rate, so that the flows lose a packet every few tens of milliseconds
// everywhere and find their shares soon. A FIFO of a second, as cheap routers
// have it, would make the copy slower still, but by chance more than by half.
func plainLine(rate uint64) hosts.Line {
	queue := (64 << 10) * math.Sqrt(float64(rate)/100e6)
	return hosts.Line{Rate: rate, Queue: max(uint32(queue), 8*1514)}
}

func (l *sshLab) build() error {
	var made [3]*hosts.Host
	for i, name := range []string{"client", "router", "server"} {
		host, err := l.net.Host(name)
		if err != nil {
			return err
		}
		made[i] = host
	}
	client, router, server := made[0], made[1], made[2]
	l.bottleneck = plug(router, "line", "10.99.2.1/24", "fd99:2::1/64")
	segments := hosts.Segments(uint64(l.Rate))
	if err := hosts.Wire(plug(client, "lan", "10.99.1.2/24", "fd99:1::2/64"), plug(router, "lan", "10.99.1.1/24", "fd99:1::1/64"), segments); err != nil {
		return err
	}
	if err := hosts.Wire(l.bottleneck, plug(server, "wan", "10.99.2.2/24", "fd99:2::2/64"), segments); err != nil {
		return err
	}
	if err := router.Forward(); err != nil {
		return err
	}
	if err := client.Route(netip.MustParsePrefix("10.99.2.0/24"), netip.MustParseAddr("10.99.1.1")); err != nil {
		return err
	}
	if err := server.Route(netip.MustParsePrefix("10.99.1.0/24"), netip.MustParseAddr("10.99.2.1")); err != nil {
		return err
	}
	l.server = server
	return l.serve(client)
}

func (l *sshLab) serve(client *hosts.Host) (err error) {
	at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("10.99.2.2"), port) }
	l.toSSH = traffic.Where{Netns: client.Netns(), To: at(22), Congestion: l.result.Environment.Congestion}
	l.toRival = traffic.Where{Netns: client.Netns(), To: at(5201), Congestion: l.result.Environment.Congestion}
	l.ssh, err = traffic.Serve(l.server.Netns(), l.toSSH.To)
	if l.ssh, err = closing(l.session, l.ssh, err); err != nil {
		return err
	}
	l.rival, err = traffic.Serve(l.server.Netns(), l.toRival.To)
	l.rival, err = closing(l.session, l.rival, err)
	return err
}

func (l *sshLab) policy() string {
	return fmt.Sprintf(`version: 1
links:
  %s: {rate: %s, scheduler: %s}
workloads:
  ssh:
    match: [{port: 22, protocol: tcp}]
    priority: 15
`, l.bottleneck.Device, l.Rate, l.Scheduler)
}

// arm makes one arm once: with the plain line, or with the policy in its place.
func (l *sshLab) arm(ctx context.Context, name string, repetition int) error {
	if name != "prioritised" {
		if err := l.bottleneck.SetLine(l.line); err != nil {
			return err
		}
		return l.measure(ctx, name, repetition)
	}
	if err := l.bottleneck.ClearLine(); err != nil {
		return err
	}
	if err := l.Controller.Apply(ctx, l.bottleneck.Host.Netns(), []byte(l.policy())); err != nil {
		return fmt.Errorf("apply policy of lab: %w", err)
	}
	l.result.Environment.Rung = l.Controller.Rung(l.bottleneck.Device)
	if err := l.measure(ctx, name, repetition); err != nil {
		return err
	}
	var err error
	if l.counters, err = l.Controller.ClassCounters(ctx, l.bottleneck.Device); err != nil {
		return fmt.Errorf("read class counters: %w", err)
	}
	return l.reset(ctx)
}

func (l *sshLab) measure(ctx context.Context, arm string, repetition int) error {
	recorder := traffic.Record(sampling, l.rival.Bytes)
	stopped := false
	defer func() {
		if !stopped {
			recorder.Stop()
		}
	}()
	if arm != "alone" {
		rival, err := traffic.Send(ctx, l.toRival, 1)
		if err != nil {
			return err
		}
		defer rival.Stop()
		if err := pause(ctx, settle); err != nil {
			return err
		}
	}
	// Keystrokes before the copy: within it they would wait behind the copy's
	// own packets, which are as urgent as they are.
	asked := time.Now()
	echoes, err := traffic.Ask(ctx, l.toSSH, traffic.Requests{Size: 48, Every: 8 * time.Millisecond, For: lead})
	if err != nil {
		return err
	}
	copies := traffic.Record(sampling, l.ssh.Bytes)
	start := time.Now()
	took, err := traffic.Copy(ctx, l.toSSH, uint64(copySeconds*payload*float64(l.Rate)/8))
	copied := copies.Stop()
	if err != nil {
		return err
	}
	end := start.Add(took)
	if arm != "alone" {
		if err := pause(ctx, lead); err != nil {
			return err
		}
	}
	stopped = true
	rival := recorder.Stop()
	l.measured(arm, "copy_seconds", "s", took.Seconds())
	l.measured(arm, "rival_mbit", "Mbit/s", rival.Mbit(start, end))
	l.measured(arm, "keystroke_ms", "ms", float64(echoes.ValueAtQuantile(50))/1e6)
	l.measured(arm, "keystroke_p99_ms", "ms", float64(echoes.ValueAtQuantile(99))/1e6)
	if arm != "alone" {
		l.before = append(l.before, rival.Mbit(asked, start))
	}
	l.draw(arm, repetition, copied, rival, start, end)
	return nil
}
