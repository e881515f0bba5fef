package lab

import (
	"context"
	"fmt"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
)

var limitersInfo = Info{
	Name:    "limiters",
	Summary: "what a limit costs, and what it does to traffic: none, HTB behind an ifb, police, HTB, Weir by departure times and by pace",
	Arms:    []string{"none", "ifb_htb", "tc_police", "htb", "edt", "weir"},
}

// A limitersLab is two hosts. On the first a workload, two processes in one
// cgroup, sends to the second over a veth pair without a queue.
type limitersLab struct {
	limiter
	far      hosts.Plug
	sender   *traffic.Worker
	asker    *traffic.Worker // of requests, beside the sender's streams
	toServer traffic.Where
	toEcho   traffic.Where // of a process of its own: the server's reads streams, and collects garbage after an apply
	toSink   traffic.Where
	lines    lines
	limits   []policy.Rate // of each load
}

func runLimiters(ctx context.Context, s *session) error {
	if s.Scheduler != policy.Auto {
		return fmt.Errorf("scheduler %s: the line of this lab has no queue, so that the limit alone is seen", s.Scheduler)
	}
	l := &limitersLab{limiter: limiter{session: s, absent: map[string]string{}}}
	if err := l.build(ctx); err != nil {
		return err
	}
	if err := l.calibrate(ctx); err != nil {
		return err
	}
	l.lookFor(ctx)
	s.result.Environment.Policy = fmt.Sprintf("# for bulk TCP; for small packets at most %s, %s and %s\n", l.limits[0], l.limits[1], l.limits[2]) + l.policy("weir", s.Rate)
	for repetition := 1; repetition <= s.Repetitions; repetition++ {
		for _, arm := range l.order(repetition) {
			s.progress("repetition %d of %d: %s", repetition, s.Repetitions, arm)
			if err := l.unlessLacking(arm, repetition, l.arm(ctx, arm, repetition)); err != nil {
				return err
			}
		}
	}
	l.conclude()
	return nil
}

func (l *limitersLab) build(ctx context.Context) error {
	var err error
	if l.line, l.far, err = l.pair(4); err != nil {
		return err
	}
	l.toServer, l.toEcho, l.toSink = l.at(l.far, 5201), l.at(l.far, 7), l.at(l.far, 9)
	server, err := traffic.Serve(l.far.Host.Netns(), l.toServer.To)
	if _, err := closing(l.session, server, err); err != nil {
		return err
	}
	echo, err := traffic.StartWorker(l.far.Host.Netns(), "")
	if echo, err = closing(l.session, echo, err); err != nil {
		return err
	}
	if err := echo.Echo(ctx, l.toEcho.To); err != nil {
		return err
	}
	if err := l.addLine(); err != nil {
		return err
	}
	l.match, err = l.employ(l.line.Host, "limited", &l.sender, &l.asker)
	return err
}

// arm makes one arm once: small packets under each limit, and by turns without one, then bulk
// TCP.
func (l *limitersLab) arm(ctx context.Context, arm string, repetition int) error {
	for i, load := range loads {
		if arm == "none" && i > 0 {
			break // there is no limit to vary
		}
		err := l.under(ctx, arm, l.limits[i], func() error { return l.small(ctx, arm, repetition, load) })
		if err != nil {
			return fmt.Errorf("at most %s: %w", l.limits[i], err)
		}
	}
	if err := l.byTurns(ctx, arm, l.limits[0]); err != nil {
		return fmt.Errorf("at most %s, by turns: %w", l.limits[0], err)
	}
	var err error
	for turn := 0; turn < l.comparisons(arm) && err == nil; turn++ {
		err = l.between(ctx, arm, func() error { return l.under(ctx, arm, l.Rate, func() error { return l.first(ctx, arm, repetition) }) })
	}
	if err == nil {
		err = l.under(ctx, arm, l.Rate, func() error { return l.streams(ctx, arm, repetition, bulks[1:]) })
	}
	if err != nil {
		return fmt.Errorf("at most %s: %w", l.Rate, err)
	}
	return nil
}

// first measures requests alone under an arm's limit, and the first of the bulks.
func (l *limitersLab) first(ctx context.Context, arm string, repetition int) error {
	idle, err := l.idle(ctx)
	if err != nil {
		return err
	}
	l.measured(arm, "rr_idle_p99_ms", "ms", idle)
	if arm == "none" {
		if err := l.offered(ctx); err != nil {
			return fmt.Errorf("streams of the limit's rate: %w", err)
		}
	}
	return l.streams(ctx, arm, repetition, bulks[:1])
}

func (l *limitersLab) streams(ctx context.Context, arm string, repetition int, bulks []bulk) error {
	for _, b := range bulks {
		if err := l.bulk(ctx, arm, repetition, b); err != nil {
			return fmt.Errorf("streams, %s: %w", b, err)
		}
	}
	return nil
}
