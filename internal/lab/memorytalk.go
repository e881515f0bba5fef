package lab

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/report"
)

// nesting is how many cgroups lie between a bound and the deepest of its sockets.
const nesting = 1000

// The bounds of those that talk: one that has room for all that the connection could ever
// take, one that grants it what it needs once it is seen to need little, and one that has no
// room for that, so that what it takes has to be watched.
const (
	ample  = "{soft: 1GiB, max: 2GiB}"
	enough = "{soft: 8MiB, max: 16MiB}"
	scarce = "{soft: 512KiB, max: 1MiB}"
)

// A talking is a process that exchanges single bytes with itself over loopback, over one
// connection of each kind.
type talking struct {
	most, least int // repetitions
	turns       traffic.Turns
	worker      *traffic.Worker
	arms        []talker
}

// A talker is where one of the connections is made.
type talker struct {
	arm    string
	dir    string // its cgroup
	cgroup string // the one that is bounded, as /proc/PID/cgroup names it
	bound  string // "": none
}

// precise is how near its mean the ratio to rr_off has to be known, with a confidence of
// 99 %: an interval of 1 %.
const precise = 0.005

// newTalking repeats as often as the published series did, if the other arms have the usual
// number of repetitions.
func newTalking(repetitions int) talking {
	return talking{most: min(5*repetitions, 30), least: min(2*repetitions, 10), turns: traffic.Turns{Rounds: 40, Slice: 3 * time.Millisecond}}
}

// talkers are those without their cgroups.
func talkers() []talker {
	return []talker{
		{arm: "rr_off"}, {arm: "rr_on", bound: ample}, {arm: "rr_granted", bound: enough},
		{arm: "rr_watched", bound: scarce}, {arm: "rr_nested_1000", bound: enough},
	}
}

// makeTalks makes the cgroups and the process.
func (l *memoryLab) makeTalks() error {
	for _, t := range talkers() {
		levels := 0
		if t.arm == "rr_nested_1000" {
			levels = nesting
		}
		top, last, err := nestCgroup(l.Controller.Cgroup(), t.arm, levels)
		if err != nil {
			return err
		}
		l.onClose(func() error { return RemoveCgroups(top) })
		t.dir = last
		l.talk.arms = append(l.talk.arms, t)
	}
	parent, err := cgroupOf(l.stuffer.PID())
	if err != nil {
		return err
	}
	for i := range l.talk.arms {
		l.talk.arms[i].cgroup = path.Join(path.Dir(parent), l.talk.arms[i].arm)
	}
	l.talk.worker, err = traffic.StartWorker(l.line.Host.Netns(), l.talk.arms[0].dir)
	l.talk.worker, err = closing(l.session, l.talk.worker, err)
	return err
}

// talks lets them talk until the ratios are known well enough.
func (l *memoryLab) talks(ctx context.Context) error {
	drawn := map[string][][2]float64{}
	for n, begin := 1, time.Now(); n <= l.talk.most && !(n > l.talk.least && l.known()); n++ {
		l.progress("requests and answers, %d of %d at most", n, l.talk.most)
		if err := l.exchange(ctx, begin, drawn); err != nil {
			return fmt.Errorf("requests and answers: %w", err)
		}
	}
	for _, t := range l.talk.arms {
		l.result.Series = append(l.result.Series, report.Series{
			Plot: "Requests and answers over loopback, one byte each", Name: t.arm, Arm: t.arm, Repetition: 1, Unit: "/s", Samples: drawn[t.arm],
		})
	}
	return nil
}

// known reports whether all that is claimed of talks is.
func (l *memoryLab) known() bool {
	for _, arm := range []string{"rr_on", "rr_granted", "rr_nested_1000"} {
		if l.talkRatio(arm).Half > precise {
			return false
		}
	}
	return true
}

// talkRatio is how an arm compares with rr_off.
func (l *memoryLab) talkRatio(arm string) report.Interval {
	off, on := l.values("rr_off", transactions), l.values(arm, transactions)
	var ratios []float64
	for i := range min(len(on), len(off)) {
		ratios = append(ratios, on[i]/off[i])
	}
	return report.Interval99(ratios)
}

const transactions = "transactions_per_second"

// exchange lets new connections take turns. The one without a bound is made before there is
// any.
func (l *memoryLab) exchange(ctx context.Context, begin time.Time, drawn map[string][][2]float64) error {
	var bounds []bounded
	for _, t := range l.talk.arms {
		if t.bound != "" {
			bounds = append(bounds, bounded{t.arm, t.cgroup, t.bound})
		}
	}
	for i, t := range l.talk.arms {
		if i == 1 {
			if err := l.apply(ctx, bounds...); err != nil {
				return err
			}
		}
		if err := errors.Join(l.talk.worker.Move(ctx, t.dir), l.talk.worker.Talk(ctx)); err != nil {
			return err
		}
	}
	// A thousand levels deep a request and its answer take seven times as long, with a bound or
	// without: the kernel counts each switch of tasks for all of them, PSI above all.
	if err := l.talk.worker.Move(ctx, l.talk.arms[0].dir); err != nil {
		return err
	}
	spoken, err := l.talk.worker.Speak(ctx, l.talk.turns)
	if err != nil {
		return err
	}
	for i, s := range spoken {
		arm := l.talk.arms[i].arm
		// The median: a turn or two lose milliseconds to the machine, above all a virtual one.
		rate := report.Summarise("/s", s.Rates).Median
		l.measured(arm, transactions, "/s", rate)
		l.measured(arm, transactions+"_all", "/s", s.Rate())
		drawn[arm] = append(drawn[arm], [2]float64{time.Since(begin).Seconds(), rate})
	}
	return errors.Join(l.talk.worker.HangUp(ctx), l.reset(ctx))
}
