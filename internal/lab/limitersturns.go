package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
)

// Two floods of one host differ by more than a limit costs: their senders run elsewhere, and
// so does other work, which changes within tenths of a second. So that cost is found within one flood, which goes by turns over a
// line with the limit and over one without.
var turns = traffic.Turns{Rounds: 240, Slice: 10 * time.Millisecond}

// turns are fewer where there are so few repetitions that they can not show what a limit costs.
func (l *limitersLab) turns() traffic.Turns {
	few := turns
	if l.Repetitions < 6 {
		few.Rounds /= 6
	}
	return few
}

// lines are the two wires between the hosts of the limiters lab.
type lines [2]struct{ near, far hosts.Plug }

// of is which of the lines has the limit in a repetition: each has it as often as the other.
func (l *lines) of(repetition int) (limited, free int) { return repetition % 2, (repetition + 1) % 2 }

// byTurns floods both lines, one of which has the limit, and notes what arrives over each.
func (l *limitersLab) byTurns(ctx context.Context, arm string, repetition int, limit policy.Rate) error {
	limited, free := l.lines.of(repetition)
	usual := l.line
	l.line = l.lines[limited].near
	defer func() { l.line = usual }()
	return l.under(ctx, arm, limit, func() error {
		var before, after [2]uint64
		if err := l.received(&before); err != nil {
			return err
		}
		sinks, turns := l.sinks(), l.turns()
		if err := l.sender.Alternate(ctx, sinks[limited], sinks[free], floodSockets, datagram, turns); err != nil {
			return err
		}
		if err := pause(ctx, drained); err != nil {
			return err
		}
		if err := l.received(&after); err != nil {
			return err
		}
		all := (time.Duration(turns.Rounds) * turns.Slice).Seconds()
		l.measured(arm, "pps_by_turns", "packets/s", float64(after[limited]-before[limited])/all)
		l.measured(arm, "pps_by_turns_none", "packets/s", float64(after[free]-before[free])/all)
		return nil
	})
}

// received counts what has arrived over both lines.
func (l *limitersLab) received(packets *[2]uint64) (err error) {
	for i, line := range l.lines {
		if packets[i], _, err = line.far.Received(); err != nil {
			return err
		}
	}
	return nil
}

// sinks is where the floods go over both lines.
func (l *limitersLab) sinks() (at [2]traffic.Where) {
	for i, line := range l.lines {
		at[i] = l.at(line.far, 9)
	}
	return at
}

// addLine adds a second wire beside the lab's own, and sinks at the ends of both.
func (l *limitersLab) addLine() error {
	l.lines[0].near, l.lines[0].far = l.line, l.far
	beside := &l.lines[1]
	beside.near = plug(l.line.Host, "beside", "10.99.40.1/24", "fd99:40::1/64")
	beside.far = plug(l.far.Host, "beside", "10.99.40.2/24", "fd99:40::2/64")
	if err := hosts.Wire(beside.near, beside.far, hosts.Segments(uint64(l.Rate))); err != nil {
		return err
	}
	for _, to := range l.sinks() {
		sink, err := traffic.OpenSink(l.far.Host.Netns(), to.To)
		if _, err := closing(l.session, sink, err); err != nil {
			return fmt.Errorf("beside the line: %w", err)
		}
	}
	return nil
}
