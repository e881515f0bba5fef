package lab

import (
	"context"
	"time"

	"github.com/weir-net/weir/internal/policy"
)

// Two floods of one host differ by more than a limit costs: their senders run elsewhere, and
// so does other work. So that cost is found within one flood, which has the limit by turns.
const (
	turns = 5
	turn  = 150 * time.Millisecond
)

// byTurns floods once, and notes what arrives under a limit and what before and after it. There
// is one turn more without than with it, so that a host that becomes slower or faster all the
// time favours neither.
func (l *limitersLab) byTurns(ctx context.Context, arm string, limit policy.Rate) error {
	var with, without float64
	take := func(sum *float64) error {
		var f flooded
		if err := pause(ctx, drained); err != nil {
			return err
		}
		_, err := l.pass(ctx, turn, &f)
		*sum += f.pps
		return err
	}
	_, err := l.flood(ctx, func(*flooded) error {
		if err := take(&without); err != nil {
			return err
		}
		for range turns {
			if err := l.under(ctx, arm, limit, func() error { return take(&with) }); err != nil {
				return err
			}
			if err := take(&without); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.measured(arm, "pps_by_turns", "packets/s", with/turns)
	l.measured(arm, "pps_by_turns_none", "packets/s", without/(turns+1))
	return nil
}
