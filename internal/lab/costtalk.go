package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// talks is how often requests and answers are compared, for each repetition.
const talks = 6

// talks exchanges requests and answers over loopback, without the meter and with it by turns.
func (l *costLab) talks(ctx context.Context) error {
	if err := l.talker.Talk(ctx); err != nil {
		return err
	}
	for n := range talks * l.Repetitions {
		l.progress("requests and answers, %d of %d", n+1, talks*l.Repetitions)
		order := []string{"rr_off", "rr_on"}
		if n%2 == 1 {
			slices.Reverse(order)
		}
		for _, arm := range order {
			if err := l.exchange(ctx, arm); err != nil {
				return fmt.Errorf("arm %s: %w", arm, err)
			}
		}
	}
	return l.talker.HangUp(ctx)
}

func (l *costLab) exchange(ctx context.Context, arm string) (err error) {
	if arm == "rr_on" {
		live, err := startLive(l.Controller.Cgroup())
		if err != nil {
			return err
		}
		defer func() {
			_, stopped := live.stop()
			err = errors.Join(err, stopped)
		}()
	}
	// The meter looks at what it would cost before it runs for a part of the time.
	if _, err := l.talker.Speak(ctx, l.warmUp); err != nil {
		return err
	}
	spoken, err := l.talker.Speak(ctx, l.turns)
	if err != nil {
		return err
	}
	l.measured(arm, transactions, "/s", spoken[0].Rate())
	return nil
}
