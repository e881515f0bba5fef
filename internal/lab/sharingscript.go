package lab

import (
	"context"
	"errors"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/report"
)

// A scene begins with a workload that joins or leaves.
type scene struct {
	metric, words string // of the line's use meanwhile
	who           int
	leaves        bool
	beats         int // its length
}

// busy is the scene in which all want more than they are promised. Its first beat
// is theirs to find their shares.
const busy = 2

var script = [...]scene{
	{"line_used_by_small", "small alone", small, false, 1},
	{"line_used_by_small_and_middle", "small and middle", middle, false, 1},
	busy: {"line_used_by_all", "all three", large, false, 3},
	{"line_used_by_small_and_large", "small and large", middle, true, 1},
	{"line_used_by_large", "large alone", small, true, 1},
}

// whileAllSend ends the names of the workloads' rates in the busy scene.
const whileAllSend = "_while_all_send_mbit"

// String is the moment with which the scene begins.
func (s scene) String() string {
	if s.leaves {
		return sharers[s.who].name + " leaves"
	}
	return sharers[s.who].name + " joins"
}

// joinSampling is the distance of the readings from which the time after a join is told.
const joinSampling = 4 * time.Millisecond

// everybody is the number, among the counters, of what everybody sends.
const everybody = len(sharers)

// A played is what arrived while the script ran.
type played struct {
	began       [len(script) + 1]time.Time // of each scene, and the end
	fine, drawn []traffic.Trace            // of the counters, to find a join by and to draw
}

// play runs the script once.
func (l *sharingLab) play(ctx context.Context) (p played, err error) {
	fine, drawn := traffic.Record(joinSampling, l.counters()...), traffic.Record(2*sampling, l.counters()...)
	for i, scene := range script {
		p.began[i] = time.Now()
		if scene.leaves {
			_, err = l.flows[scene.who].worker.Stop(ctx)
		} else {
			err = l.send(ctx, scene.who)
		}
		if err == nil {
			err = pause(ctx, time.Until(p.began[i].Add(time.Duration(scene.beats)*l.beat)))
		}
		if err != nil {
			break
		}
	}
	p.began[len(script)] = time.Now()
	p.fine, p.drawn = fine.Stop(), drawn.Stop()
	if err != nil {
		return p, err
	}
	return p, l.stop(ctx)
}

func (l *sharingLab) send(ctx context.Context, who int) error {
	f := l.flows[who]
	return f.worker.Send(ctx, f.to, sharers[who].flows)
}

// stop ends whatever anybody sends.
func (l *sharingLab) stop(ctx context.Context) error {
	var failed []error
	for _, f := range l.flows {
		_, err := f.worker.Stop(ctx)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// onWire is what a line carries for the payload of full segments.
func onWire(bytes uint64) uint64 { return uint64(float64(bytes) / payload) }

// counters count what arrives as a line carries it, in frames: of each workload's
// TCP, by the segments, and of everybody, by the device. That counts one header for
// all segments of a packet; so none counts here, and payload is made into frames.
// An acknowledgement that a sender gets is no load of this line.
func (l *sharingLab) counters() (counters []func() uint64) {
	const headers = 1514 - segment
	for _, f := range l.flows {
		counters = append(counters, func() uint64 { return onWire(f.server.Segments() * segment) })
	}
	return append(counters, func() uint64 {
		packets, bytes, _ := l.far.Received()              // the device is there until the lab ends
		return onWire(bytes - min(bytes, headers*packets)) // the first ones may be ARP's, which are shorter than that
	})
}

// measure notes what came of the script.
func (l *sharingLab) measure(arm string, p played) {
	for i, scene := range script {
		use := 100 * p.fine[everybody].Mbit(p.began[i], p.began[i+1]) / l.mbit()
		l.measured(arm, scene.metric, "%", use)
	}
	for who, w := range sharers {
		l.measured(arm, w.name+whileAllSend, "Mbit/s", p.fine[who].Mbit(p.began[busy].Add(l.beat), p.began[busy+1]))
	}
	for _, i := range joins {
		l.measureJoin(arm, script[i].who, p.fine[script[i].who], p.began[i], p.began[i+1])
	}
}

// joins are the scenes that begin with one who finds the line full.
var joins = [...]int{1, busy}

// joined is the part of its min with which a workload has joined.
const joined = 0.95

// measureJoin notes how long it took until a workload had what it is promised. Where
// that was but the rush with which TCP starts, and lost in the same scene, it has not
// joined.
func (l *sharingLab) measureJoin(arm string, who int, t traffic.Trace, from, to time.Time) {
	enough := joined * l.promised(who)
	if at, ok := t.Reaches(enough, l.joinWindow(who), from, to); ok && t.Mbit(at, to) >= enough {
		l.measured(arm, sharers[who].name+"_join_ms", "ms", at.Sub(from).Seconds()*1e3)
	}
}

// joinWindow is over how long the rate of a workload that joins is looked at: what
// joinFrames take that it is promised.
func (l *sharingLab) joinWindow(who int) time.Duration {
	return time.Duration(joinFrames * 1514 * 8 / l.promised(who) * float64(time.Microsecond))
}

const joinFrames = 50

func (l *sharingLab) draw(arm string, repetition int, p played) {
	for who, w := range sharers {
		series := report.Series{
			Plot: sharingPlots[arm], Name: w.name, Arm: arm, Repetition: repetition, Unit: "Mbit/s",
			Samples: p.drawn[who].Rates(p.began[0], p.began[0], p.began[len(script)]),
		}
		if who == large { // once is enough
			for i, scene := range script[1:] {
				series.Marks = append(series.Marks, report.Mark{Seconds: p.began[i+1].Sub(p.began[0]).Seconds(), Text: scene.String()})
			}
		}
		l.result.Series = append(l.result.Series, series)
	}
}
