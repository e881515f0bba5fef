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

// A rateSight is what was seen of a cell.
type rateSight struct {
	ratesRun
	trace traffic.Trace
	begun time.Time // when something arrived
	away  absences
}

// observe runs the traffic below its limit, while it watches the CPUs.
func (l *ratesLab) observe(ctx context.Context, arm string, wire int, kind rateKind, limit policy.Rate) (seen rateSight, err error) {
	if l.guard != nil {
		if err := l.guard.Watch(ctx); err != nil {
			return seen, err
		}
	}
	recorder := traffic.RecordTimed(rateLook, l.count(ctx, kind))
	seen.ratesRun, err = l.runTraffic(ctx, arm, wire, kind, limit)
	seen.trace = recorder.Stop()[0]
	if err != nil {
		return seen, err
	}
	if l.guard != nil {
		if seen.away, err = l.guard.Watched(ctx); err != nil {
			return seen, err
		}
	}
	var ok bool
	if seen.begun, ok = seen.trace.Begin(); !ok {
		return seen, errors.New("nothing arrived")
	}
	return seen, nil
}

// part is what got through between two moments, in per cent of the limit.
func (s rateSight) part(from, to time.Time, limit policy.Rate) float64 {
	return 100 * s.trace.Mbit(from, to) / (float64(limit) / 1e6)
}

// spans are those of what was seen. Where a CPU was away what was due leaves when it is back, and so may be of the span after.
func (s rateSight) spans(limit policy.Rate) spans {
	return spans{
		part: func(from time.Time) float64 { return s.part(from, from.Add(rateSpan), limit) },
		away: func(from time.Time) time.Duration { return s.away.within(from.Add(-rateLook), from.Add(rateSpan)) },
	}
}

// note notes what got through.
func (l *ratesLab) note(seen rateSight, arm string, wire int, kind rateKind, limit policy.Rate) {
	rate := l.rateName(wire)
	name := kind.name + "_" + rate
	over := seen.counted.Add(l.window)
	l.measured(arm, name, "%", seen.part(seen.counted, over, limit))
	if l.guard != nil {
		l.measured(arm, "away_"+name, "%", 100*seen.away.within(seen.counted, over).Seconds()/l.window.Seconds())
	}
	l.measured(arm, "cpu_"+name, "% of a CPU", 100*seen.cpu.busy()*float64(runtime.NumCPU()))
	if kind.streams == 0 {
		return
	}
	l.measured(arm, "retransmits_"+name, "", float64(seen.again.Segments))
	l.measured(arm, "retransmits_needless_"+name, "", float64(seen.again.Needless))
	l.measured(arm, "retransmits_start_"+name, "", float64(seen.atFirst.Segments))
	l.measured(arm, "retransmits_start_needless_"+name, "", float64(seen.atFirst.Needless))
	if kind.streams > 1 {
		l.measured(arm, "jain_"+rate, "", seen.jain)
	}
	l.measured(arm, "first_"+name, "%", seen.part(seen.begun, seen.begun.Add(rateSpan), limit))
	if !l.fine(limit, kind) {
		return
	}
	spans := seen.spans(limit)
	found := func(metric, unit string, f finding) {
		l.measured(arm, metric, unit, f.all)
		if l.guard != nil {
			l.measured(arm, "away_"+metric, "%", f.away)
			if f.away < 100 {
				l.measured(arm, "here_"+metric, unit, f.here)
			}
		}
	}
	found("settled_"+name, "ms", spans.settled(seen.begun))
	if kind.streams > 1 {
		found("settled_stop_"+rate, "ms", spans.settled(seen.stopped))
	}
	found("highest_"+name, "%", spans.highest(seen.begun.Add(soon), seen.counted.Add(l.window-rateSpan)))
}

// draw has what got through in each 100 ms drawn, until the window is over and most of several streams have stopped.
func (l *ratesLab) draw(seen rateSight, arm string, wire int, kind rateKind, limit policy.Rate, repetition int) {
	s := report.Series{
		Plot: fmt.Sprintf("%s, in each 100 ms: %s", ratesPlots[arm], kind.words), Name: l.rateWords(wire), Arm: arm, Repetition: repetition, Unit: "% of the limit",
	}
	end := seen.counted.Add(l.window)
	if kind.streams > 1 {
		end = seen.stopped.Add(soonLook)
		s.Marks = []report.Mark{{Seconds: seen.stopped.Sub(seen.begun).Seconds(), Text: fmt.Sprintf("%d of %d stop", kind.streams-stays, kind.streams)}}
	}
	for from := seen.begun; !from.Add(rateSpan).After(end); from = from.Add(rateSpan) {
		s.Samples = append(s.Samples, [2]float64{from.Sub(seen.begun).Seconds(), math.Round(10*seen.part(from, from.Add(rateSpan), limit)) / 10})
	}
	l.result.Series = append(l.result.Series, s)
}

// fine says whether each flow sends at least a frame every 10 ms: windows tell of a limit what its packets can.
func (l *ratesLab) fine(limit policy.Rate, kind rateKind) bool {
	const frameBits = 1514 * 8
	return float64(limit)/float64(max(kind.streams, 1))/100 >= frameBits
}
