package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

var priorityInfo = Info{
	Name:    "priority",
	Summary: "two local workloads on one line: same class, different classes, raised in flight, 100 flips",
	Arms:    []string{"solo", "same_class", "different_class", "live_raise", "flips"},
}

// window is how long streams are measured once they have settled.
const window = 1200 * time.Millisecond

// headroom is the most that a stream offers, as a multiple of the line's rate.
//
// TCP keeps what a local stream has in the device's queue to a millisecond of
// its pacing rate (tcp_small_queue_check), which follows its congestion window.
// So two streams in one FIFO lose nothing, learn nothing of each other, and keep
// whatever shares they happened to begin with: 60:40 as well as 95:5. A bound on
// the pacing rate above the line's rate, the same for both, costs neither of
// them throughput and makes what they have in the queue equal.
//
// An fq_codel leaf does without. Of the eight FIFOs that a class of htb has
// otherwise two flows meet in one 1 time in 8; source ports chosen so that they
// never do would hide that, so the result says what holds without the bound.
const headroom = 1.25

// A priorityLab is two hosts. On the first, two local workloads, processes in
// cgroups of their own, send to the second over a link with a rate.
type priorityLab struct {
	*session
	link    hosts.Plug
	flows   [2]*flow     // "first" and "second"
	classes []ClassCount // as they were after different_class
}

// levels are the priorities of the two workloads.
type levels [2]policy.Level

func runPriority(ctx context.Context, s *session) error {
	l := &priorityLab{session: s}
	if err := l.build(); err != nil {
		return err
	}
	s.result.Environment.Policy = "# in solo and different_class; both have 4 in same_class, and 0 in live_raise and flips\n" + l.policy(levels{0, 4})
	arms := []struct {
		name string
		run  func(context.Context, int) error
	}{
		{"solo", l.solo},
		{"same_class", l.sameClass},
		{"different_class", l.differentClass},
		{"live_raise", l.liveRaise},
	}
	for repetition := 1; repetition <= s.Repetitions; repetition++ {
		for _, arm := range arms {
			s.progress("repetition %d of %d: %s", repetition, s.Repetitions, arm.name)
			if err := arm.run(ctx, repetition); err != nil {
				return fmt.Errorf("arm %s: %w", arm.name, err)
			}
		}
	}
	s.progress("%d flips", flips)
	if err := l.flip(ctx); err != nil {
		return fmt.Errorf("arm flips: %w", err)
	}
	l.conclude()
	return nil
}

func (l *priorityLab) build() error {
	link, far, err := l.pair(3)
	if err != nil {
		return err
	}
	l.link = link
	for i, name := range []string{"first", "second"} {
		to := l.at(far, 5201+i)
		to.Pace = uint64(float64(l.Rate) * headroom)
		if l.flows[i], err = l.flow(link.Host, far.Host, name, to); err != nil {
			return fmt.Errorf("make workload %s: %w", name, err)
		}
	}
	return nil
}

func (l *priorityLab) policy(levels levels) string {
	text := fmt.Sprintf("version: 1\nlinks:\n  %s: {rate: %s, scheduler: %s}\nworkloads:\n", l.link.Device, l.Rate, l.Scheduler)
	for i, f := range l.flows {
		text += fmt.Sprintf("  %s:\n    match: [{cgroup: %q}]\n    priority: %d\n", f.name, f.cgroup, levels[i])
	}
	return text
}

// under runs fn with the workloads at two levels and some of them sending.
func (l *priorityLab) under(ctx context.Context, levels levels, senders []*flow, fn func() error) error {
	if err := l.Controller.Apply(ctx, l.link.Host.Netns(), []byte(l.policy(levels))); err != nil {
		return fmt.Errorf("apply policy of lab: %w", err)
	}
	l.result.Environment.Rung = l.Controller.Rung(l.link.Device)
	for _, f := range senders {
		if err := f.worker.Send(ctx, f.to, 1); err != nil {
			return err
		}
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	for _, f := range senders {
		if _, err := f.worker.Stop(ctx); err != nil {
			return err
		}
	}
	return l.reset(ctx)
}

func (l *priorityLab) solo(ctx context.Context, repetition int) error {
	return l.under(ctx, levels{0, 4}, l.flows[1:], func() error {
		return l.observe(ctx, "solo", repetition, l.flows[1:])
	})
}

func (l *priorityLab) sameClass(ctx context.Context, repetition int) error {
	// Who comes first finds an empty queue; they take turns in that.
	senders := slices.Clone(l.flows[:])
	if repetition%2 == 0 {
		slices.Reverse(senders)
	}
	return l.under(ctx, levels{4, 4}, senders, func() error {
		return l.observe(ctx, "same_class", repetition, l.flows[:])
	})
}

func (l *priorityLab) differentClass(ctx context.Context, repetition int) error {
	return l.under(ctx, levels{0, 4}, l.flows[:], func() (err error) {
		if err := l.observe(ctx, "different_class", repetition, l.flows[:]); err != nil {
			return err
		}
		l.classes, err = l.counters(ctx)
		return err
	})
}

// observe measures some flows for a window.
func (l *priorityLab) observe(ctx context.Context, arm string, repetition int, flows []*flow) error {
	recorder := record(flows)
	start := time.Now()
	err := pause(ctx, window)
	end := time.Now()
	traces := recorder.Stop()
	if err != nil {
		return err
	}
	for i, f := range flows {
		l.measured(arm, f.name+"_mbit", "Mbit/s", traces[i].Mbit(start, end))
		l.draw(arm, f, repetition, traces[i].Rates(start, start, end))
	}
	return nil
}

// record starts to record what flows deliver.
func record(flows []*flow) *traffic.Recorder {
	var counters []func() uint64
	for _, f := range flows {
		counters = append(counters, f.server.Bytes)
	}
	return traffic.Record(sampling, counters...)
}

func (l *priorityLab) draw(arm string, f *flow, repetition int, samples [][2]float64, marks ...report.Mark) {
	if arm == "solo" {
		return // a flat line
	}
	l.result.Series = append(l.result.Series, report.Series{
		Plot: plots[arm], Name: f.name, Arm: arm, Repetition: repetition, Unit: "Mbit/s", Samples: samples, Marks: marks,
	})
}

var plots = map[string]string{
	"same_class":      "Same class: both workloads at priority 4",
	"different_class": "Different classes: the first at priority 0, the second at 4",
	"live_raise":      "The second raised from 0 to 15 while both run",
}

func (l *priorityLab) counters(ctx context.Context) ([]ClassCount, error) {
	return l.classCounters(ctx, l.link.Device)
}
