package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

// flips is how often the priority of a running flow is changed.
const flips = 100

// patience is how long a change may take before it counts as without effect.
const patience = 250 * time.Millisecond

// quiet is how long the class that a flow has left must send nothing, while
// the new one sends: several packets' time at any rate of a lab.
const quiet = 5 * time.Millisecond

// regain is how long after a raise the flows are not measured. The packets that
// the raised flow has in its old class's queue wait there behind the new ones:
// TCP takes them for lost, sometimes not before its retransmission timeout of
// 200 ms, and what its receiver counts, which is in order, jumps then.
const regain = 600 * time.Millisecond

// liveRaise raises the second of two running streams from 0 to 15.
func (l *priorityLab) liveRaise(ctx context.Context, repetition int) error {
	return l.under(ctx, levels{0, 0}, l.flows[:], func() error {
		recorder := record(l.flows[:])
		start := time.Now()
		err := pause(ctx, window/2)
		raised := time.Now()
		var took time.Duration
		moved := false
		if err == nil {
			took, moved, err = l.set(ctx, l.flows[1], 0, 15)
		}
		if err == nil {
			err = pause(ctx, regain+window)
		}
		end := time.Now()
		traces := recorder.Stop()
		if err != nil {
			return err
		}
		if moved {
			l.measured("live_raise", "effect_ms", "ms", took.Seconds()*1e3)
		}
		mark := report.Mark{Seconds: raised.Sub(start).Seconds(), Text: "raised"}
		settled := raised.Add(regain)
		for i, f := range l.flows {
			l.measured("live_raise", f.name+"_mbit", "Mbit/s", traces[i].Mbit(settled, end))
			var marks []report.Mark
			if i == 1 {
				marks = []report.Mark{mark}
			}
			l.draw("live_raise", f, repetition, traces[i].Rates(start, start, end), marks...)
		}
		return l.clear(ctx, l.flows[1])
	})
}

// flip changes the priority of one running flow to and fro.
func (l *priorityLab) flip(ctx context.Context) error {
	second := l.flows[1]
	effective := 0
	err := l.under(ctx, levels{0, 0}, l.flows[1:], func() error {
		from, to := policy.Level(0), policy.Level(15)
		for range flips {
			took, moved, err := l.set(ctx, second, from, to)
			if err != nil {
				return err
			}
			if moved {
				l.measured("flips", "effect_ms", "ms", took.Seconds()*1e3)
				left, err := l.left(ctx, from, to)
				if err != nil {
					return err
				}
				if left {
					effective++
				}
			}
			from, to = to, from
		}
		return l.clear(ctx, second)
	})
	l.measured("flips", "flips_effective", fmt.Sprintf("of %d", flips), float64(effective))
	return err
}

func (l *priorityLab) clear(ctx context.Context, f *flow) error {
	if err := l.Controller.Clear(ctx, f.worker.PID()); err != nil {
		return fmt.Errorf("clear priority of workload %s: %w", f.name, err)
	}
	return nil
}

// set changes the level of a flow that sends and looks, from the call on, when the
// class of the new level moves. It returns that time, and whether it did.
func (l *priorityLab) set(ctx context.Context, f *flow, from, to policy.Level) (time.Duration, bool, error) {
	before, err := l.counters(ctx)
	if err != nil {
		return 0, false, err
	}
	was, err := class(before, to)
	if err != nil {
		return 0, false, err
	}
	if old, err := class(before, from); err != nil {
		return 0, false, err
	} else if old.Class == was.Class {
		return 0, false, fmt.Errorf("tell priority %d from %d: the link has one class for both", from, to)
	}
	start := time.Now()
	set := make(chan error, 1)
	go func() { set <- l.Controller.Set(ctx, f.worker.PID(), to) }()
	took, moved, err := l.movement(ctx, start, to, was.Packets)
	// Set may have more to do after the flow has moved.
	if err := <-set; err != nil {
		return 0, false, fmt.Errorf("set priority of workload %s to %d: %w", f.name, to, err)
	}
	return took, moved, err
}

// movement waits until the class of a level has sent more than so many packets.
// It returns the time since start, and whether it came to that.
func (l *priorityLab) movement(ctx context.Context, start time.Time, to policy.Level, packets uint64) (time.Duration, bool, error) {
	for time.Since(start) < patience {
		after, err := l.counters(ctx)
		if err != nil {
			return 0, false, err
		}
		took := time.Since(start)
		if now, err := class(after, to); err != nil {
			return 0, false, err
		} else if now.Packets > packets {
			return took, true, nil
		}
		if err := pause(ctx, 100*time.Microsecond); err != nil {
			return 0, false, err
		}
	}
	return 0, false, nil
}

// left waits until the old class has sent nothing for a while in which the new
// one did, and reports whether it came to that. Packets that were in the old
// class's queue already have to go out first.
func (l *priorityLab) left(ctx context.Context, from, to policy.Level) (bool, error) {
	for start := time.Now(); time.Since(start) < patience; {
		before, err := l.counters(ctx)
		if err != nil {
			return false, err
		}
		if err := pause(ctx, quiet); err != nil {
			return false, err
		}
		after, err := l.counters(ctx)
		if err != nil {
			return false, err
		}
		oldBefore, err := class(before, from)
		if err != nil {
			return false, err
		}
		// The same classes are in both.
		oldAfter, _ := class(after, from)
		newBefore, _ := class(before, to)
		newAfter, _ := class(after, to)
		if oldAfter.Packets == oldBefore.Packets && newAfter.Packets > newBefore.Packets {
			return true, nil
		}
	}
	return false, nil
}
