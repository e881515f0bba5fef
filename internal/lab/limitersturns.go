package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
)

// Two floods of one host differ by more than a limit costs: their senders run elsewhere, and
// so does other work, which changes within milliseconds. So that cost is found within one flood, which goes by turns over a
// line with the limit and over one without: by turns of 2 ms the ratio varies 0.4 to 0.7 times as much as by turns of 10 ms that take as
// long together. What a limit costs is some 2 % more or less each time that it is put there, and stays so for as long as it stands,
// presumably by where in memory its programs and tables lie. So it is put there anew now and then.
var turns = traffic.Turns{Rounds: 60, Slice: 2 * time.Millisecond}

// anew is how often a limit is put on each line.
const anew = 30

// turns are fewer where there are so few repetitions that they can not show what a limit costs.
func (l *limitersLab) turns() (each traffic.Turns, times int) {
	if l.Repetitions < 6 {
		return traffic.Turns{Rounds: turns.Rounds * anew / 6, Slice: turns.Slice}, 1
	}
	return turns, anew
}

// lines are the two wires between the hosts of the limiters lab.
type lines [2]struct{ near, far hosts.Plug }

// onlookers are the programs that stand where there is no limit, and what is noted of them: what any program there costs, any that
// asks a packet's socket, and one that stands elsewhere, so that neither line has more than the other: what that is found to cost is
// the error of all this.
var onlookers = []struct {
	hosts.Onlooker
	elsewhere bool
	through   string
}{{hosts.Idle, false, ""}, {hosts.Asking, false, "_asking"}, {hosts.Idle, true, "_elsewhere"}}

// byTurns floods both lines by turns, each in turn with the limit, and notes what arrives over
// those with it and without. Where there is no limit, programs that hold nothing take its place by turns.
func (l *limitersLab) byTurns(ctx context.Context, arm string, limit policy.Rate) error {
	if arm != "none" {
		return l.turnsOf(ctx, arm, "", func(flood func() error) error { return l.under(ctx, arm, limit, flood) })
	}
	for _, o := range onlookers {
		err := l.turnsOf(ctx, arm, o.through, func(flood func() error) error {
			device := l.line
			if o.elsewhere {
				device.Device = "lo"
			}
			return device.Through(o.Onlooker, flood)
		})
		if _, lacking := errors.AsType[hosts.Lacking](err); lacking {
			return nil // what others are compared with needs no program
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// turnsOf notes what arrives over both lines while each in turn has what an arm puts there, and the other has not.
func (l *limitersLab) turnsOf(ctx context.Context, arm, through string, put func(flood func() error) error) error {
	usual := l.line
	defer func() { l.line = usual }()
	var with, without uint64
	turns, times := l.turns()
	for i := range times * len(l.lines) {
		limited := i % len(l.lines)
		l.line = l.lines[limited].near
		err := put(func() error {
			arrived, err := l.alternate(ctx, begins(i), turns)
			with, without = with+arrived[limited], without+arrived[1-limited]
			return err
		})
		if err != nil {
			return err
		}
	}
	all := (time.Duration(times*len(l.lines)*turns.Rounds) * turns.Slice).Seconds()
	l.measured(arm, "pps_by_turns"+through, "packets/s", float64(with)/all)
	l.measured(arm, "pps_by_turns_none"+through, "packets/s", float64(without)/all)
	return nil
}

// begins is the line that has the first turn, and so the last one as well, each time that a limit is put there. It changes, as that line
// had some 0.2 % more while it did not: what is on its way from the last takes no time of the other's, presumably.
func begins(time int) (line int) { return (time + time/len(lines{})) % len(lines{}) }

// alternate floods the lines by turns, one of them first, and returns how many packets arrived over each.
func (l *limitersLab) alternate(ctx context.Context, first int, turns traffic.Turns) (packets [2]uint64, err error) {
	var before, after [2]uint64
	if err := l.received(&before); err != nil {
		return packets, err
	}
	sinks := l.sinks()
	if err := l.sender.Alternate(ctx, sinks[first], sinks[1-first], floodSockets, datagram, turns); err != nil {
		return packets, err
	}
	if err := pause(ctx, drained); err != nil {
		return packets, err
	}
	if err := l.received(&after); err != nil {
		return packets, err
	}
	for i := range packets {
		packets[i] = after[i] - before[i]
	}
	return packets, nil
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
