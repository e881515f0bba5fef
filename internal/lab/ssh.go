package lab

import (
	"context"
	"errors"
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

// segment is how much TCP carries in a full Ethernet frame, with its timestamps
// option, in bytes, and payload the part of the frame that this is.
const (
	segment = 1448
	payload = segment / 1514.0
)

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
	watched    []float64 // part of each copy for which it is certain that its packets waited
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
// everywhere and find their shares soon. In a FIFO of a second, as cheap routers
// have it, who gets how much of so short a copy is chance.
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
	if l.counters, err = l.classCounters(ctx, l.bottleneck.Device); err != nil {
		return err
	}
	return l.reset(ctx)
}

// measure runs the copy, in all arms but alone beside the rival, and notes what
// came out.
func (l *sshLab) measure(ctx context.Context, arm string, repetition int) error {
	around := traffic.Record(sampling, l.rivalBytes)
	c, err := l.exchange(ctx, arm)
	rival := around.Stop()[0]
	if err != nil {
		return err
	}
	l.measured(arm, "copy_seconds", "s", c.end.Sub(c.start).Seconds())
	l.measured(arm, "rival_mbit", "Mbit/s", c.rival.Mbit(c.start, c.end))
	l.measured(arm, "keystroke_ms", "ms", c.echoes[0])
	l.measured(arm, "keystroke_p99_ms", "ms", c.echoes[1])
	if mbit, certain := beside(c.looks, 15, l.Rate); certain > 0 {
		l.measured(arm, "rival_while_waiting_mbit", "Mbit/s", mbit)
		l.watched = append(l.watched, certain.Seconds()/c.end.Sub(c.start).Seconds())
	}
	if arm != "alone" {
		l.before = append(l.before, rival.Mbit(c.asked, c.start))
	}
	l.draw(arm, repetition, c, rival)
	return nil
}

// rivalBytes counts the rival's segments, not what TCP can deliver of them: one
// that is lost waits for its turn as long as the copy lasts, and all that come
// after it would count then.
func (l *sshLab) rivalBytes() uint64 { return l.rival.Segments() * segment }

// A copied is one copy and what went on beside it.
type copied struct {
	asked, start, end time.Time  // when the keystrokes and the copy began, and the copy's end
	echoes            [2]float64 // ms of a keystroke and its echo: median, 99th percentile
	copy, rival       traffic.Trace
	looks             []look // at the classes, where there are any
}

// exchange presses keys and copies, beside the rival or alone.
func (l *sshLab) exchange(ctx context.Context, arm string) (c copied, err error) {
	if arm != "alone" {
		streams, err := traffic.Send(ctx, l.toRival, 1)
		if err != nil {
			return c, err
		}
		defer streams.Stop()
		if err := pause(ctx, settle); err != nil {
			return c, err
		}
	}
	// Keystrokes before the copy: within it they would wait behind the copy's
	// own packets, which are as urgent as they are.
	c.asked = time.Now()
	echoes, err := traffic.Ask(ctx, l.toSSH, traffic.Requests{Size: 48, Every: 8 * time.Millisecond, For: lead})
	if err != nil {
		return c, err
	}
	c.echoes = [2]float64{float64(echoes.ValueAtQuantile(50)) / 1e6, float64(echoes.ValueAtQuantile(99)) / 1e6}
	if err := l.copy(ctx, arm, &c); err != nil || arm == "alone" {
		return c, err
	}
	return c, pause(ctx, lead)
}

// copy copies and watches. Its recorder begins and ends with it, so that there is
// a reading at both moments: an estimate between two others would give the rival
// some of what it had before and after.
func (l *sshLab) copy(ctx context.Context, arm string, c *copied) error {
	stop := func() ([]look, error) { return nil, nil }
	if arm == "prioritised" {
		stop = l.watch(ctx, l.bottleneck.Device)
	}
	recorder := traffic.Record(sampling, l.ssh.Bytes, l.rivalBytes)
	c.start = time.Now()
	took, err := traffic.Copy(ctx, l.toSSH, uint64(copySeconds*payload*float64(l.Rate)/8))
	c.end = c.start.Add(took)
	traces := recorder.Stop()
	c.copy, c.rival = traces[0], traces[1]
	looks, unseen := stop()
	c.looks = looks
	return errors.Join(err, unseen)
}
