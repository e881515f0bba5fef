package lab

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/report"
)

// A bulk is streams whose limit is the lab's rate.
type bulk struct {
	suffix  string // of their metrics
	streams int
	ecn     bool // their ends understand marks of congestion
	windows int  // for how many they are measured
}

// The requests beside the first are compared with those alone: of twice as many the hundredth worst is steadier.
var bulks = []bulk{{suffix: "", streams: 32, windows: 2}, {suffix: "_1", streams: 1, windows: 1}, {suffix: "_ecn", streams: 32, ecn: true, windows: 1}}

// String is how many they are.
func (b bulk) String() string {
	if b.ecn {
		return fmt.Sprintf("%d with ECN", b.streams)
	}
	return strconv.Itoa(b.streams)
}

const (
	// bulkSettle is how long streams run before they are measured: nobody competes,
	// and a limit is found within 300 ms.
	bulkSettle = 400 * time.Millisecond
	// bulkWindow is how long they are measured, and requests without them.
	bulkWindow = 1200 * time.Millisecond
)

// requestTurns is how often requests beside the first of the bulks are compared with those alone, in each of several repetitions
// and under a limit of Weir's: these are what the lab judges, and how long the hundredth worst of them takes is up to a
// host that has other work. One repetition alone is a quick look.
const requestTurns = 3

// comparisons is how often that is done in a repetition of an arm.
func (l *limitersLab) comparisons(arm string) int {
	if _, weirs := weirs[arm]; weirs && l.Repetitions > 1 {
		return requestTurns
	}
	return 1
}

// requests for so many windows are 48 bytes every 2 ms: half a megabit per second of the limit.
func requests(windows int) traffic.Requests {
	return traffic.Requests{Size: 48, Every: 2 * time.Millisecond, For: time.Duration(windows) * bulkWindow}
}

// idle measures requests alone: 99 of 100 take so many ms.
func (l *limitersLab) idle(ctx context.Context) (float64, error) {
	if err := l.asker.Connect(ctx, l.toEcho); err != nil {
		return 0, err
	}
	latency, err := l.asker.Ask(ctx, requests(1))
	return latency.P99.Seconds() * 1e3, err
}

// between runs fn between two measurements of requests alone without a limit, and notes their mean. What
// fn measures is compared with that and no other: from one minute to the next a shared machine differs by more than
// what is to be seen.
func (l *limitersLab) between(ctx context.Context, arm string, fn func() error) error {
	if arm == "none" {
		return fn()
	}
	before, err := l.idle(ctx)
	if err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	after, err := l.idle(ctx)
	if err == nil {
		l.measured(arm, "rr_alone_p99_ms", "ms", (before+after)/2)
	}
	return err
}

// bulk runs streams and, beside them in the same limit, requests. Without one they
// would compete for nothing but the CPUs.
func (l *limitersLab) bulk(ctx context.Context, arm string, repetition int, of bulk) (err error) {
	if of.ecn {
		err = l.ecn(true)
		defer func() { err = errors.Join(err, l.ecn(false)) }()
	}
	if err != nil {
		return err
	}
	marked, err := l.far.Host.Marked()
	if err != nil {
		return err
	}
	dropped, err := l.droppedBy(arm)
	if err != nil {
		return err
	}
	b, err := l.watchBulk(ctx, l.toServer, of, arm != "none")
	if err != nil {
		return err
	}
	now, err := l.far.Host.Marked()
	if err != nil {
		return err
	}
	droppedNow, err := l.droppedBy(arm)
	if err != nil {
		return err
	}
	suffix := of.suffix
	if _, weirs := weirs[arm]; weirs {
		l.measured(arm, "limit_drops"+suffix, "", float64(droppedNow-dropped))
	}
	l.measured(arm, "marks"+suffix, "", float64(now-marked))
	l.measured(arm, "mbit"+suffix, "Mbit/s", b.trace.Mbit(b.start, b.end))
	l.measured(arm, "retransmits"+suffix, "", float64(b.again.Segments))
	l.measured(arm, "retransmits_needless"+suffix, "", float64(b.again.Needless))
	if arm != "none" {
		l.measured(arm, "rr_p99_ms"+suffix, "ms", b.latency.P99.Seconds()*1e3)
		l.measured(arm, "rr_steal_ms"+suffix, "ms", b.steal.Seconds()*1e3)
		// Its streams would leave the others no room on the scale.
		l.result.Series = append(l.result.Series, report.Series{
			Plot: plotBulk[suffix], Name: arm, Arm: arm, Repetition: repetition, Unit: "Mbit/s", Samples: b.trace.Rates(b.start, b.start, b.end),
		})
	}
	return nil
}

// offered measures requests beside the first of the bulks where its streams offer no more than the limit by themselves, and
// there is none: what requests wait for there is what the host does for as many streams of that rate.
func (l *limitersLab) offered(ctx context.Context) error {
	to := l.toServer
	to.Pace = uint64(l.Rate) * segment / 1514 / uint64(bulks[0].streams)
	b, err := l.watchBulk(ctx, to, bulks[0], true)
	if err != nil {
		return err
	}
	l.measured("none", "mbit_offered", "Mbit/s", b.trace.Mbit(b.start, b.end))
	l.measured("none", "rr_p99_ms_offered", "ms", b.latency.P99.Seconds()*1e3)
	return nil
}

// droppedBy is how many packets the limit of an arm has dropped since it is there, by Weir's own count; 0 of others' means.
func (l *limitersLab) droppedBy(arm string) (uint64, error) {
	if _, weirs := weirs[arm]; !weirs {
		return 0, nil
	}
	return l.Controller.Dropped()
}

// ecn has TCP at both ends ask for marks of congestion, or not.
func (l *limitersLab) ecn(ask bool) error {
	return errors.Join(l.line.Host.ECN(ask), l.far.Host.ECN(ask))
}

// A bulked is what streams did in a window.
type bulked struct {
	trace      traffic.Trace
	again      traffic.Resent // since they began
	latency    traffic.Latency
	start, end time.Time
	steal      time.Duration // of all CPUs, until all was answered
}

// watchBulk starts streams, measures them for their windows, the same under every means, and stops them: answers
// that come after the windows' end, and the streams beside them, count for the requests
// alone.
func (l *limitersLab) watchBulk(ctx context.Context, to traffic.Where, of bulk, ask bool) (b bulked, err error) {
	// A handshake beside the streams would last longer under one means than
	// under another.
	if err := l.asker.Connect(ctx, l.toEcho); err != nil {
		return b, err
	}
	if err := l.sender.Send(ctx, to, of.streams); err != nil {
		return b, err
	}
	if err := pause(ctx, bulkSettle); err != nil {
		return b, err
	}
	before, err := readCPUTimes()
	if err != nil {
		return b, err
	}
	window := requests(of.windows).For
	recorder := traffic.Record(sampling, l.wire())
	b.start = time.Now()
	b.end = b.start.Add(window)
	var asker sync.WaitGroup
	var unanswered error
	if ask {
		asker.Go(func() { b.latency, unanswered = l.asker.Ask(ctx, requests(of.windows)) })
	}
	err = pause(ctx, window)
	b.trace = recorder.Stop()[0]
	if err == nil {
		b.again, err = l.sender.Resent(ctx)
	}
	asker.Wait()
	if err = errors.Join(err, unanswered); err != nil {
		return b, err
	}
	after, err := readCPUTimes()
	if err != nil {
		return b, err
	}
	b.steal = after.since(before).steal
	_, err = l.sender.Stop(ctx)
	return b, err
}

// wire counts the bytes that arrive from now on, as a real line would carry them.
// The device counts one header for all segments of a packet, a limit one for each.
func (l *limitersLab) wire() func() uint64 {
	const headers = 1514 - segment
	packets, bytes, _ := l.far.Received() // the device is there until the lab ends
	segments, _ := l.far.Host.Arrived()
	return func() uint64 {
		p, b, _ := l.far.Received()
		s, _ := l.far.Host.Arrived()
		uncounted := int64(s-segments) - int64(p-packets)
		return uint64(max(0, int64(b-bytes)+headers*uncounted))
	}
}

var plotBulk = map[string]string{
	"":     "Bulk TCP of 32 flows under the limit",
	"_1":   "Bulk TCP of one flow under the limit",
	"_ecn": "Bulk TCP of 32 flows with ECN under the limit",
}
