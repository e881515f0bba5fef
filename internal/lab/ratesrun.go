package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
)

// startingUp is what a limit needs for what each flow begins with: twice the first ten segments, which TCP does not pace,
// as some may be sent again; or twice as much again where nobody paces them, until a bucket has been paid back what it gave.
func startingUp(arm string, limit policy.Rate, kind rateKind) time.Duration {
	each := 2 * 10 * 1514
	if arm == ofReceiver || answering[arm] != "" {
		each = 64 << 10
	}
	return time.Duration(float64(kind.streams*each*8) / float64(limit) * float64(time.Second))
}

// start sends traffic by both senders: of several streams some are the first one's.
func (l *ratesLab) start(ctx context.Context, wire int, kind rateKind, limit policy.Rate) error {
	to := l.wires[wire].to
	switch kind.streams {
	case 0:
		// Three times what the limit takes, and no more than a CPU can send beside who receives.
		to.Pace = uint64(min(3*limit, limit+limit/2+200_000_000)) / uint64(floodSockets)
		return l.senders[0].Flood(ctx, to, floodSockets, fullDatagram)
	case 1:
		return l.senders[0].Send(ctx, to, 1)
	}
	return errors.Join(l.senders[1].Send(ctx, to, kind.streams-stays), l.senders[0].Send(ctx, to, stays))
}

// stop ends all traffic.
func (l *ratesLab) stop(ctx context.Context) (err error) {
	for _, w := range l.senders {
		_, failed := w.Stop(ctx)
		err = errors.Join(err, failed)
	}
	return err
}

// A ratesRun is what traffic did.
type ratesRun struct {
	counted time.Time      // when the window began
	stopped time.Time      // when some of the streams had stopped
	atFirst traffic.Resent // before that
	again   traffic.Resent // and in it
	cpu     cpuTimes       // what all CPUs did in it
	jain    float64        // Jain's index of the streams
}

// runTraffic runs traffic through the window, then stops most of several streams, and all in the end.
func (l *ratesLab) runTraffic(ctx context.Context, arm string, wire int, kind rateKind, limit policy.Rate) (run ratesRun, err error) {
	if err := l.start(ctx, wire, kind, limit); err != nil {
		return run, err
	}
	if err := pause(ctx, rateSettle+startingUp(arm, limit, kind)); err != nil {
		return run, err
	}
	if run.atFirst, err = l.again(ctx); err != nil {
		return run, err
	}
	before, err := l.receiver.Received(ctx)
	if err != nil {
		return run, err
	}
	cpu, err := readCPUTimes()
	if err != nil {
		return run, err
	}
	run.counted = time.Now()
	if err := pause(ctx, l.window); err != nil {
		return run, err
	}
	spent, err := readCPUTimes()
	if err != nil {
		return run, err
	}
	run.cpu = spent.since(cpu)
	after, err := l.receiver.Received(ctx)
	if err != nil {
		return run, err
	}
	run.jain = jain(before.Each, after.Each)
	if run.again, err = l.again(ctx); err != nil {
		return run, err
	}
	run.again = run.again.Since(run.atFirst)
	if kind.streams > 1 {
		if _, err := l.senders[1].Stop(ctx); err != nil {
			return run, err
		}
		run.stopped = time.Now()
		if err := pause(ctx, soonLook+rateSpan); err != nil {
			return run, err
		}
	}
	if err := l.stop(ctx); err != nil {
		return run, err
	}
	return run, l.quiet(ctx)
}

// again is what has been sent again so far.
func (l *ratesLab) again(ctx context.Context) (all traffic.Resent, err error) {
	for _, w := range l.senders {
		resent, failed := w.Resent(ctx)
		all, err = all.Plus(resent), errors.Join(err, failed)
	}
	return all, err
}

// quiet waits until nothing arrives any more.
func (l *ratesLab) quiet(ctx context.Context) error {
	last, err := l.receiver.Received(ctx)
	for range 100 {
		if err == nil {
			err = pause(ctx, 50*time.Millisecond)
		}
		if err != nil {
			return err
		}
		now, err := l.receiver.Received(ctx)
		if err != nil {
			return err
		}
		if now.Packets == last.Packets && len(now.Each) == 0 {
			return nil
		}
		last = now
	}
	return fmt.Errorf("%d connections are still there", len(last.Each))
}

// jain is Jain's index of what streams received between two moments: 1 where all had the same.
func jain(before, after map[string]uint64) float64 {
	var sum, squares float64
	for of, bytes := range after {
		got := float64(bytes - before[of])
		sum, squares = sum+got, squares+got*got
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(after)) * squares)
}
