package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/observe"
	"github.com/weir-net/weir/internal/policy"
)

var costInfo = Info{
	Name:    "cpu-cost",
	Summary: "a loop that computes on the CPU that handles packets: what it is charged for, what it is left with, and what the meter says and takes itself",
	Arms:    append([]string{"idle", "one_stream", "two_streams", "packets", "meter_off", "meter_on", "rr_off", "rr_on"}, limitArms()...),
}

const (
	// meteredPackets is how many packets a second the meter's own cost is measured at, and of how
	// many bytes they are.
	meteredPackets = 200_000
	meteredSize    = 64
)

// A costLab is two hosts with a wire that has no queue, and one CPU that handles what arrives at the
// second one. A loop computes there; all else that the lab does runs elsewhere.
type costLab struct {
	*session
	looping    time.Duration // how long the loop computes at a time
	turns      traffic.Turns // of requests and answers
	warmUp     traffic.Turns // of them, which do not count
	accounting cost.Accounting

	cpu       int
	line, far hosts.Plug
	sender    *traffic.Worker
	talker    *traffic.Worker
	sink      *traffic.Sink
	toServer  traffic.Where
	toSink    traffic.Where
	limited   *limitedRoute
}

func runCost(ctx context.Context, s *session) error {
	// Each loop and each talk lasts from one reading of the meter to the next. What the kernel does for the meter on a CPU is of what
	// it costs, and must not wait for who talks there.
	turn := traffic.Turns{Slice: 100 * time.Millisecond, Ordinary: true}
	warmUp, turns := turn, turn
	warmUp.Rounds, turns.Rounds = 4, 20
	return (&costLab{session: s, looping: costInterval, turns: turns, warmUp: warmUp}).run(ctx)
}

func (l *costLab) run(ctx context.Context) error {
	if s := l.Scheduler; s != policy.Auto {
		return fmt.Errorf("scheduler %s: what is measured has no queue", s)
	}
	cpus, err := observe.OnlineCPUs()
	if err != nil {
		return err
	}
	if l.accounting, err = observe.FindAccounting(); err != nil {
		return err
	}
	l.cpu = cpus[len(cpus)-1]
	back, err := observe.KeepOff(l.cpu)
	if err != nil {
		return err
	}
	l.onClose(back)
	if len(cpus) == 1 {
		l.warn("there is one CPU only: who sends and who receives share it with the loop, which lowers what it has in all arms with traffic")
	}
	if err := l.build(); err != nil {
		return err
	}
	if err := l.route(); err != nil {
		return err
	}
	l.limited.lookFor(ctx)
	for repetition := 1; repetition <= l.Repetitions; repetition++ {
		if err := l.arms(ctx, repetition); err != nil {
			return err
		}
		if err := l.limits(ctx, repetition); err != nil {
			return err
		}
	}
	if err := l.talks(ctx); err != nil {
		return err
	}
	l.conclude()
	return nil
}

func (l *costLab) build() error {
	var err error
	if l.line, l.far, err = l.pair(8); err != nil {
		return err
	}
	if err := l.far.Steer(l.cpu); err != nil {
		return err
	}
	l.toServer, l.toSink = l.at(l.far, 5201), l.at(l.far, 5202)
	server, err := traffic.Serve(l.far.Host.Netns(), l.toServer.To)
	if _, err = closing(l.session, server, err); err != nil {
		return err
	}
	l.sink, err = traffic.OpenSink(l.far.Host.Netns(), netip.AddrPortFrom(l.toSink.To.Addr(), l.toSink.To.Port()))
	if l.sink, err = closing(l.session, l.sink, err); err != nil {
		return err
	}
	for _, worker := range []**traffic.Worker{&l.sender, &l.talker} {
		*worker, err = traffic.StartWorker(l.line.Host.Netns(), l.Controller.Cgroup())
		if *worker, err = closing(l.session, *worker, err); err != nil {
			return err
		}
	}
	return nil
}

// pairs is how often a repetition compares what is without the meter with what is with it: the difference is
// smaller than what differs from one time to the next.
const pairs = 6

// arms has the loop compute beside each load once, and some times without the meter and with it.
func (l *costLab) arms(ctx context.Context, repetition int) error {
	order := inTurn(costInfo.Arms[:4], repetition)
	for n := range pairs {
		order = append(order, inTurn(costInfo.Arms[4:6], repetition+n)...)
	}
	for _, arm := range order {
		l.progress("repetition %d of %d: %s", repetition, l.Repetitions, arm)
		if err := l.arm(ctx, arm); err != nil {
			return fmt.Errorf("arm %s: %w", arm, err)
		}
	}
	return nil
}

// arm has the loop compute beside the load of an arm.
func (l *costLab) arm(ctx context.Context, arm string) error {
	load := func() error { return nil }
	switch arm {
	case "one_stream":
		load = func() error { return l.sender.Send(ctx, l.toServer, 1) }
	case "two_streams":
		load = func() error { return l.sender.Send(ctx, l.toServer, 2) }
	case "packets", "meter_off", "meter_on":
		paced := l.toSink
		paced.Pace = meteredPackets * meteredSize * 8
		load = func() error { return l.sender.Flood(ctx, paced, 1, meteredSize) }
	}
	return l.beside(ctx, arm, l.far, load)
}

// beside has the loop compute beside a load that arrives at a device. The meter starts before the load: that takes CPU, and a paced
// sender who has none meanwhile sends later what it owes, so that more packets would arrive with the meter than without.
func (l *costLab) beside(ctx context.Context, arm string, at hosts.Plug, load func() error) (err error) {
	var meter *observe.Meter
	switch arm {
	case "meter_off":
	case "meter_on":
		live, err := startLive(l.Controller.Cgroup())
		if err != nil {
			return err
		}
		if err := l.loaded(ctx, arm, at, load, nil); err != nil {
			_, stopped := live.stop()
			return errors.Join(err, stopped)
		}
		since, err := live.stop()
		if err != nil {
			return err
		}
		l.itself(arm, since)
		return nil
	default:
		// What is over when a reading is taken might else be seen for a part of the time only in which the loop does not run.
		if meter, err = observe.Start(observe.Options{Cgroup: l.Controller.Cgroup(), Always: true, Hertz: costHertz}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, meter.Close()) }()
	}
	return l.loaded(ctx, arm, at, load, meter)
}

// loaded has the loop compute while there is a load.
func (l *costLab) loaded(ctx context.Context, arm string, at hosts.Plug, load func() error, meter *observe.Meter) error {
	if err := load(); err != nil {
		return err
	}
	if arm != "idle" {
		if err := pause(ctx, settle); err != nil {
			return err
		}
	}
	if err := l.loop(ctx, arm, at, meter); err != nil {
		return err
	}
	_, err := l.sender.Stop(ctx)
	return err
}

// loop computes, with a meter beside it where one is to be held against it, and notes what it was left with.
func (l *costLab) loop(ctx context.Context, arm string, at hosts.Plug, meter *observe.Meter) error {
	var before, after *cost.Reading
	var err error
	if meter != nil {
		if before, err = meter.Read(); err != nil {
			return err
		}
	}
	packets, bytes, err := at.Received()
	if err != nil {
		return err
	}
	loop, err := observe.Loop(ctx, l.cpu, l.looping)
	if err != nil {
		return err
	}
	packetsThen, bytesThen, err := at.Received()
	if err != nil {
		return err
	}
	seconds := loop.Elapsed.Seconds()
	l.measured(arm, "effective_percent", "%", loop.EffectivePercent())
	l.measured(arm, "apparent_percent", "%", loop.ApparentPercent())
	l.measured(arm, "left_percent", "%", loop.LeftPercent())
	l.measured(arm, "packets_per_second", "/s", float64(packetsThen-packets)/seconds)
	l.measured(arm, "mbit", "Mbit/s", float64(bytesThen-bytes)*8/seconds/1e6)
	if meter == nil {
		return nil
	}
	if after, err = meter.Read(); err != nil {
		return err
	}
	since := after.Since(before)
	p := cost.Judge(l.cpu, uint32(os.Getpid()), loop, since, cost.Names{Owner: func(cost.Owner) cost.PartyID { return cost.PartyID{} }})
	l.measured(arm, "stolen_percent", "%", p.Stolen)
	l.measured(arm, "stolen_ns_per_packet", "ns", perPacket(p.Stolen, float64(packetsThen-packets)/seconds))
	l.measured(arm, "stolen_percent_meter", "%", p.Metered)
	l.measured(arm, "meter_itself_percent", "%", p.Meter)
	l.measured(arm, "ksoftirqd_percent", "%", p.Ksoftirqd)
	l.itself(arm, since)
	return nil
}

// itself notes what a meter says of itself.
func (l *costLab) itself(arm string, since *cost.Reading) {
	l.measured(arm, "meter_percent", "%", 100*since.Own.Seconds()/since.At.Seconds())
	l.measured(arm, "sums_percent", "%", sums(since))
}

// sums is how much of the time of interrupts on all CPUs the rows of the matrix have.
func sums(r *cost.Reading) float64 {
	var rows, all time.Duration
	for _, row := range r.Rows {
		rows += row.Times.Stolen()
	}
	for _, c := range r.CPUs {
		for _, t := range c.Time {
			all += t
		}
	}
	if all == 0 {
		return 100
	}
	return 100 * float64(rows) / float64(all)
}
