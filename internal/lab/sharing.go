package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
)

var sharingInfo = Info{
	Name:    "sharing",
	Summary: "three workloads with a min of 20, 30 and 50 % of one line join and leave: without the mins, and with them",
	Arms:    []string{"none", "weir"},
}

// The workloads of the sharing lab. None has a priority.
const (
	small = iota
	middle
	large
)

// sharers are what each workload is promised, and how it sends: the less it is
// promised, the more flows it has, so that nobody gets his share by chance.
var sharers = [...]struct {
	name  string
	min   int // per cent of the line
	flows int
}{
	small:  {"small", 20, 8},
	middle: {"middle", 30, 2},
	large:  {"large", 50, 1},
}

// A sharingLab is two hosts. On the first, three workloads, processes in cgroups
// of their own, send to the second over a line with a rate.
type sharingLab struct {
	*session
	beat      time.Duration // of the script
	line, far hosts.Plug
	flows     [len(sharers)]*flow
	toSink    traffic.Where
}

func runSharing(ctx context.Context, s *session) error {
	return (&sharingLab{session: s, beat: time.Second}).run(ctx)
}

func (l *sharingLab) run(ctx context.Context) error {
	if s := l.Scheduler; s != policy.Auto && s != policy.HTB {
		return fmt.Errorf("scheduler %s: htb alone promises workloads a part of the line", s)
	}
	if err := l.build(); err != nil {
		return err
	}
	l.result.Environment.Policy = "# without workloads in arm none\n" + l.policy("weir")
	for repetition := 1; repetition <= l.Repetitions; repetition++ {
		for _, arm := range inTurn(sharingInfo.Arms, repetition) {
			l.progress("repetition %d of %d: %s", repetition, l.Repetitions, arm)
			if err := l.arm(ctx, arm, repetition); err != nil {
				return fmt.Errorf("arm %s: %w", arm, err)
			}
		}
	}
	l.conclude()
	return nil
}

func (l *sharingLab) build() error {
	var err error
	if l.line, l.far, err = l.pair(5); err != nil {
		return err
	}
	l.toSink = l.at(l.far, 9)
	l.toSink.Pace = uint64(l.Rate) * overflow / uint64(sharers[small].flows)
	sink, err := traffic.OpenSink(l.far.Host.Netns(), l.toSink.To)
	if _, err := closing(l.session, sink, err); err != nil {
		return err
	}
	for i, w := range sharers {
		if l.flows[i], err = l.flow(l.line.Host, l.far.Host, w.name, l.at(l.far, 5201+i)); err != nil {
			return fmt.Errorf("make workload %s: %w", w.name, err)
		}
	}
	return nil
}

// policy is the same link in both arms, and in the second the workloads.
func (l *sharingLab) policy(arm string) string {
	text := fmt.Sprintf("version: 1\nlinks:\n  %s: {rate: %s, scheduler: htb}\n", l.line.Device, l.Rate)
	if arm == "none" {
		return text
	}
	text += "workloads:\n"
	for i, w := range sharers {
		text += fmt.Sprintf("  %s:\n    match: [{cgroup: %q}]\n    egress: {min: %d%%}\n", w.name, l.flows[i].cgroup, w.min)
	}
	return text
}

// mbit is the rate of the line in Mbit/s.
func (l *sharingLab) mbit() float64 { return float64(l.Rate) / 1e6 }

// promised is the min of a workload in Mbit/s.
func (l *sharingLab) promised(who int) float64 { return l.mbit() * float64(sharers[who].min) / 100 }

// arm makes one arm once: the script, then the flood.
func (l *sharingLab) arm(ctx context.Context, arm string, repetition int) error {
	if err := l.Controller.Apply(ctx, l.line.Host.Netns(), []byte(l.policy(arm))); err != nil {
		return fmt.Errorf("apply policy of lab: %w", err)
	}
	if arm == "weir" {
		l.result.Environment.Rung = l.Controller.Rung(l.line.Device)
	}
	p, err := l.play(ctx)
	if err != nil {
		return err
	}
	l.measure(arm, p)
	l.draw(arm, repetition, p)
	if err := l.flood(ctx, arm); err != nil {
		return fmt.Errorf("flood: %w", err)
	}
	return l.reset(ctx)
}
