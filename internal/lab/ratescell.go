package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

const (
	// rateSettle is how long traffic runs before what gets through is counted.
	rateSettle = time.Second
	// rateSpan is the window of which none may have much more than the limit.
	rateSpan = 100 * time.Millisecond
	// rateLook is from one reading of the receiver's count to the next.
	rateLook = 10 * time.Millisecond
	// soon is within what time a limit is to be met, and for so long it is looked whether it stays so.
	soon, soonLook = 300 * time.Millisecond, time.Second
)

// Bytes on the wire beside the payload: Ethernet, IPv4, and TCP with timestamps or UDP.
const (
	tcpHeads = 14 + 20 + 32
	udpHeads = 14 + 20 + 8
)

// cell measures one kind of traffic below one limit.
func (l *ratesLab) cell(ctx context.Context, arm string, wire int, kind rateKind, repetition int) error {
	limit := l.rates[wire]
	if limit == fastest {
		name := "fastest_" + kind.name
		if known := l.values(arm, name); len(known) > 0 {
			limit = policy.Rate(known[0]) * 1_000_000
		} else {
			var err error
			if limit, err = l.findFastest(ctx, arm, wire, kind); err != nil {
				return err
			}
			l.measured(arm, name, "Mbit/s", float64(limit)/1e6)
		}
	}
	return l.under(ctx, arm, wire, limit, func() error { return l.measure(ctx, arm, wire, kind, limit, repetition) })
}

// findFastest finds the fastest limit that this host carries: from what passes without one on, less and less
// until it is carried at any time.
func (l *ratesLab) findFastest(ctx context.Context, arm string, wire int, kind rateKind) (limit policy.Rate, err error) {
	const less, about = 0.75, 0.02
	_, mbit, _, err := l.carries(ctx, wire, kind, policy.MaxEgress)
	for err == nil {
		mbit *= less
		limit = max(policy.Rate(mbit), 1) * 1_000_000
		if limit <= slowest {
			return slowest, nil // it is told there that this is too much as well
		}
		var least, most float64
		err = l.under(ctx, arm, wire, limit, func() (err error) {
			least, _, most, err = l.carries(ctx, wire, kind, limit)
			return err
		})
		if least >= (1-about)*mbit && most <= (1+about)*mbit {
			break
		}
	}
	return limit, err
}

// carries is what gets through for three seconds, Mbit/s: in the slowest tenth of one, in the mean, and in the fastest.
func (l *ratesLab) carries(ctx context.Context, wire int, kind rateKind, limit policy.Rate) (least, mean, most float64, err error) {
	count := l.count(ctx, kind)
	if err := l.start(ctx, wire, kind, limit); err != nil {
		return 0, 0, 0, err
	}
	if err := pause(ctx, settle); err != nil {
		return 0, 0, 0, err
	}
	const seconds = 3
	recorder := traffic.RecordTimed(rateLook, count)
	begin := time.Now()
	err = pause(ctx, seconds*time.Second)
	trace := recorder.Stop()[0]
	least, mean = math.Inf(1), trace.Mbit(begin, begin.Add(seconds*time.Second))
	for from := begin; from.Before(begin.Add(seconds*time.Second - rateSpan)); from = from.Add(rateLook) {
		mbit := trace.Mbit(from, from.Add(rateSpan))
		least, most = min(least, mbit), max(most, mbit)
	}
	return least, mean, most, errors.Join(err, l.stop(ctx), l.quiet(ctx))
}

// count counts bytes on the wire of what the receiver gets from now on, and says when.
func (l *ratesLab) count(ctx context.Context, kind rateKind) func() (time.Time, uint64) {
	heads := uint64(tcpHeads)
	if kind.streams == 0 {
		heads = udpHeads
	}
	last, _ := l.receiver.Received(ctx) // who does not answer is found by whoever asks for more
	first := last.Bytes + heads*last.Packets
	return func() (time.Time, uint64) {
		if now, err := l.receiver.Received(ctx); err == nil {
			last = now
		}
		return time.Unix(0, last.At), last.Bytes + heads*last.Packets - first
	}
}

// measure runs the traffic below its limit and notes what got through.
func (l *ratesLab) measure(ctx context.Context, arm string, wire int, kind rateKind, limit policy.Rate, repetition int) error {
	recorder := traffic.RecordTimed(rateLook, l.count(ctx, kind))
	run, err := l.runTraffic(ctx, arm, wire, kind, limit)
	trace := recorder.Stop()[0]
	if err != nil {
		return err
	}
	name, mbit := kind.name+"_"+l.rateName(wire), float64(limit)/1e6
	part := func(from, to time.Time) float64 { return 100 * trace.Mbit(from, to) / mbit }
	l.measured(arm, name, "%", part(run.counted, run.counted.Add(l.window)))
	l.measured(arm, "cpu_"+name, "% of a CPU", 100*run.cpu.busy()*float64(runtime.NumCPU()))
	begun, ok := trace.Begin()
	if !ok {
		return errors.New("nothing arrived")
	}
	if l.fine(limit, kind) {
		l.draw(arm, wire, kind, repetition, run, begun, part)
	}
	if kind.streams == 0 {
		return nil
	}
	l.measured(arm, "retransmits_"+name, "", float64(run.again.Segments))
	l.measured(arm, "retransmits_needless_"+name, "", float64(run.again.Needless))
	l.measured(arm, "retransmits_start_"+name, "", float64(run.atFirst.Segments))
	l.measured(arm, "retransmits_start_needless_"+name, "", float64(run.atFirst.Needless))
	if kind.streams > 1 {
		l.measured(arm, "jain_"+l.rateName(wire), "", run.jain)
	}
	l.measured(arm, "first_"+name, "%", part(begun, begun.Add(rateSpan)))
	if !l.fine(limit, kind) {
		return nil
	}
	within := func(from, to time.Time) float64 { return part(from, to) - 100 }
	l.measured(arm, "settled_"+name, "ms", settled(within, begun))
	most := 0.0
	for from := begun.Add(soon); from.Before(run.counted.Add(l.window - rateSpan)); from = from.Add(rateLook) {
		most = max(most, part(from, from.Add(rateSpan)))
	}
	l.measured(arm, "highest_"+name, "%", most)
	if kind.streams > 1 {
		l.measured(arm, "settled_stop_"+l.rateName(wire), "ms", settled(within, run.stopped))
	}
	return nil
}

// draw has what got through in each 100 ms drawn, until the window is over and most of several streams have stopped.
func (l *ratesLab) draw(arm string, wire int, kind rateKind, repetition int, run ratesRun, begun time.Time, part func(from, to time.Time) float64) {
	s := report.Series{
		Plot: fmt.Sprintf("%s, in each 100 ms: %s", ratesPlots[arm], kind.words), Name: l.rateWords(wire), Arm: arm, Repetition: repetition, Unit: "% of the limit",
	}
	end := run.counted.Add(l.window)
	if kind.streams > 1 {
		end = run.stopped.Add(soonLook)
		s.Marks = []report.Mark{{Seconds: run.stopped.Sub(begun).Seconds(), Text: fmt.Sprintf("%d of %d stop", kind.streams-stays, kind.streams)}}
	}
	for from := begun; !from.Add(rateSpan).After(end); from = from.Add(rateSpan) {
		s.Samples = append(s.Samples, [2]float64{from.Sub(begun).Seconds(), math.Round(10*part(from, from.Add(rateSpan))) / 10})
	}
	l.result.Series = append(l.result.Series, s)
}

// fine says whether each flow sends at least a frame every 10 ms: windows tell of a limit what its packets can.
func (l *ratesLab) fine(limit policy.Rate, kind rateKind) bool {
	const frameBits = 1514 * 8
	return float64(limit)/float64(max(kind.streams, 1))/100 >= frameBits
}

// settled is how long after a change the rate is within 5 %, and stays so for the rest of a second, in ms.
// Off is by how many per cent a window differs from the limit.
func settled(off func(from, to time.Time) float64, change time.Time) float64 {
	at := change
	for from := change; from.Before(change.Add(soonLook)); from = from.Add(rateLook) {
		if math.Abs(off(from, from.Add(rateSpan))) > 5 {
			at = from.Add(rateLook)
		}
	}
	return float64(at.Sub(change)) / float64(time.Millisecond)
}
