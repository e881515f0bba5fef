package lab

import (
	"context"
	"errors"
	"math"
	"runtime"
	"time"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

// A datagram of the flood, in bytes: its payload, and its frame on the line.
const (
	datagram = 64
	frame    = datagram + 42
)

// drained is when a queue of 20 ms has filled, and has passed on what it had.
const drained = 60 * time.Millisecond

// A load is a limit as a multiple of what the flood offers without one.
type load struct {
	suffix string // of its metrics
	times  float64
	window time.Duration // for which it is measured
}

// What a limit costs shows where it is never reached. Just above the load it must
// not be reached either; well below, it has to hold.
var loads = []load{
	{"", 10, 600 * time.Millisecond},
	{"_near", 1.25, 200 * time.Millisecond},
	{below, 0.25, 200 * time.Millisecond},
}

// below is the suffix of the last of the loads.
const below = "_below"

// calibrate finds what the flood offers without a limit, and the limits from
// that.
func (l *limitersLab) calibrate(ctx context.Context) error {
	l.progress("small packets without a limit")
	f, err := l.flood(ctx, l.watching(ctx, loads[0].window))
	if err != nil {
		return err
	}
	l.limit(f.pps)
	return nil
}

// limit sets the limits of the loads, in whole Mbit/s, for so many packets/s.
func (l *limitersLab) limit(offered float64) {
	l.limits = nil
	for _, load := range loads {
		mbit := math.Ceil(offered * frame * 8 * load.times / 1e6)
		l.limits = append(l.limits, policy.Rate(min(mbit, hosts.MaxLimit/1_000_000))*1e6)
	}
}

// A flooded is what came of a flood. What a queue drops counts as dropped like what
// a bucket drops: the kernel took both from the sender, and HTB's own counter says
// the same. That an HTB may drop nothing of far too much has two other reasons. A
// socket's buffer has room for some 250 of these datagrams until they have left the
// queue; where that holds as many of each socket, it stops the senders. And a frame
// that has waited a timer passes on, in a softirq on a sender's CPU: 8 us each on a
// virtual machine, where one without a limit takes 2. A limit of a frame in 8 us,
// 110 Mbit/s, leaves that CPU no time to offer more, and the queue does not fill; at
// 60 Mbit/s the same socket overruns it. So offered stands beside dropped.
type flooded struct {
	pps          float64 // that arrived, in a window
	offered      float64 // packets/s that the kernel took from the senders
	dropped      float64 // part of all that was sent
	cpu, softirq float64 // ns for each that arrived
	trace        traffic.Trace
	start, end   time.Time
}

// floodSockets is how many sockets send: more, on a host of many CPUs, would come
// near the highest limit that police takes.
var floodSockets = min(runtime.NumCPU(), 4)

// flood sends small packets as fast as this host can, while it is watched.
func (l *limitersLab) flood(ctx context.Context, watch func(*flooded) error) (f flooded, err error) {
	first, _, err := l.far.Received()
	if err != nil {
		return f, err
	}
	begin := time.Now()
	if err := l.sender.Flood(ctx, l.toSink, floodSockets, datagram); err != nil {
		return f, err
	}
	if err := l.arrives(ctx, first); err != nil {
		return f, err
	}
	if err := pause(ctx, drained); err != nil {
		return f, err
	}
	if err := watch(&f); err != nil {
		return f, err
	}
	sent, err := l.sender.Stop(ctx)
	if err != nil {
		return f, err
	}
	f.offered = float64(sent) / time.Since(begin).Seconds()
	if err := pause(ctx, drained); err != nil {
		return f, err
	}
	last, _, err := l.far.Received()
	if sent == 0 {
		return f, errors.Join(err, errors.New("nothing was sent"))
	}
	// A neighbour's question more may have arrived than was sent.
	f.dropped = max(0, 1-float64(last-first)/float64(sent))
	return f, err
}

// arrives waits until a flood has begun to arrive: on a busy machine its senders may
// get their turn late. The first few packets may be neighbours'.
func (l *limitersLab) arrives(ctx context.Context, before uint64) error {
	const few = 20
	for deadline := time.Now().Add(10 * time.Second); ; {
		now, _, err := l.far.Received()
		if err != nil || now >= before+few {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("nothing arrived")
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// watching measures a flood for a window.
func (l *limitersLab) watching(ctx context.Context, window time.Duration) func(*flooded) error {
	return func(f *flooded) error {
		recorder := traffic.Record(sampling, func() uint64 {
			_, bytes, _ := l.far.Received() // the device is there until the lab ends
			return bytes
		})
		defer func() { f.trace = recorder.Stop()[0] }()
		before, err := readCPUTimes()
		if err != nil {
			return err
		}
		packets, err := l.pass(ctx, window, f)
		if err != nil {
			return err
		}
		after, err := readCPUTimes()
		spent := after.since(before)
		f.cpu, f.softirq = float64(spent.total-spent.idle)/packets, float64(spent.softirq)/packets
		return err
	}
}

// pass counts what arrives in a window. The clock is read next to each count.
func (l *limitersLab) pass(ctx context.Context, window time.Duration, f *flooded) (packets float64, err error) {
	before, _, err := l.far.Received()
	if err != nil {
		return 0, err
	}
	f.start = time.Now()
	if err := pause(ctx, window); err != nil {
		return 0, err
	}
	after, _, err := l.far.Received()
	if err != nil {
		return 0, err
	}
	f.end = time.Now()
	packets = float64(after - before)
	f.pps = packets / f.end.Sub(f.start).Seconds()
	if packets == 0 {
		return 0, errors.New("nothing arrived")
	}
	return packets, nil
}

// small floods under a limit and notes what came out.
func (l *limitersLab) small(ctx context.Context, arm string, repetition int, load load) error {
	f, err := l.flood(ctx, l.watching(ctx, load.window))
	if err != nil {
		return err
	}
	l.measured(arm, "pps"+load.suffix, "packets/s", f.pps)
	l.measured(arm, "drops"+load.suffix, "%", 100*f.dropped)
	if load.suffix == below {
		l.measured(arm, "offered"+below, "packets/s", f.offered)
		l.measured(arm, "used"+below, "%", 100*f.pps*frame*8/float64(l.limits[len(loads)-1]))
	}
	if load.suffix != "" {
		return nil // what a packet costs while others are dropped says little
	}
	l.measured(arm, "cpu_ns_per_packet", "ns", f.cpu)
	if f.softirq > 0 { // some kernels do not account it
		l.measured(arm, "softirq_ns_per_packet", "ns", f.softirq)
	}
	l.result.Series = append(l.result.Series, report.Series{
		Plot: "Small packets under a limit far above them: frames that arrive", Name: arm, Arm: arm, Repetition: repetition, Unit: "Mbit/s", Samples: f.trace.Rates(f.start, f.start, f.end),
	})
	return nil
}
