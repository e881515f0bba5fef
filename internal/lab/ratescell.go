package lab

import (
	"context"
	"slices"
	"time"

	"github.com/weir-net/weir/internal/policy"
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
		if kind.streams > 0 && slices.Contains(pacedArms, arm) {
			if err := l.noteUnreached(ctx, arm, wire, kind); err != nil {
				return err
			}
		}
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

// measure runs the traffic below its limit and notes what got through.
func (l *ratesLab) measure(ctx context.Context, arm string, wire int, kind rateKind, limit policy.Rate, repetition int) error {
	seen, err := l.observe(ctx, arm, wire, kind, limit)
	if err != nil {
		return err
	}
	l.note(seen, arm, wire, kind, limit)
	if l.fine(limit, kind) {
		l.draw(seen, arm, wire, kind, limit, repetition)
	}
	return nil
}

// findFastest finds the fastest limit that this host carries: from what passes without one on, less and less
// until it is carried at any time. What is measured is watched by then, which takes of the CPUs, too, so this is.
func (l *ratesLab) findFastest(ctx context.Context, arm string, wire int, kind rateKind) (policy.Rate, error) {
	const less = 0.75
	seen, err := l.observe(ctx, arm, wire, kind, policy.MaxEgress)
	if err != nil {
		return 0, err
	}
	mbit := l.mbit(seen)
	for {
		mbit *= less
		limit := policy.Rate(mbit) * 1_000_000
		if limit <= slowest {
			return slowest, nil // it is told there that this is too much as well
		}
		err := l.under(ctx, arm, wire, limit, func() (err error) {
			seen, err = l.observe(ctx, arm, wire, kind, limit)
			return err
		})
		if err != nil {
			return 0, err
		}
		if seen.spans(limit).farthest(seen.counted, seen.counted.Add(l.window-rateSpan)).all <= mayBeAbove {
			return limit, nil
		}
	}
}

// mbit is what got through in the window, Mbit/s.
func (l *ratesLab) mbit(seen rateSight) float64 {
	return seen.trace.Mbit(seen.counted, seen.counted.Add(l.window))
}

// noteUnreached notes how much gets through below a limit that is more than this host carries, of what does without any.
func (l *ratesLab) noteUnreached(ctx context.Context, arm string, wire int, kind rateKind) error {
	without, err := l.observe(ctx, arm, wire, kind, policy.MaxEgress)
	if err != nil {
		return err
	}
	return l.under(ctx, arm, wire, policy.MaxEgress, func() error {
		below, err := l.observe(ctx, arm, wire, kind, policy.MaxEgress)
		if err != nil {
			return err
		}
		l.measured(arm, "without_"+kind.name, "Mbit/s", l.mbit(without))
		l.measured(arm, "unreached_"+kind.name, "%", 100*l.mbit(below)/l.mbit(without))
		return nil
	})
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
