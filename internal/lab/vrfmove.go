package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
)

const (
	// pulse is the distance of the datagrams that tell how long a link lets nothing pass.
	pulse = time.Millisecond
	// before and after are how long they go on around a change. The kernel may tell a second
	// later what has become of a carrier.
	before = 100 * time.Millisecond
	after  = 1500 * time.Millisecond
	// survival is how long an open session may take to answer, before it counts as dead.
	survival = 20 * time.Second
)

// families are in the names of metrics, in the order of toSession.
var families = [2]string{"", "_ipv6"}

// open opens the sessions of a repetition, and watches the link while nothing is done to it.
func (l *vrfLab) open(ctx context.Context) error {
	for _, where := range l.toSession {
		for range l.tries {
			s, err := traffic.Connect(ctx, where)
			if err != nil {
				return fmt.Errorf("open a session: %w", err)
			}
			l.sessions = append(l.sessions, s)
		}
	}
	return l.during(ctx, "default", "", func() error { return nil })
}

// move moves the link into the VRF.
func (l *vrfLab) move(ctx context.Context) error {
	return l.during(ctx, "vrf_broken_dns", "", func() error {
		begin := time.Now()
		if err := l.Controller.Apply(ctx, l.host.Netns(), []byte(l.policy())); err != nil {
			return fmt.Errorf("apply policy of lab: %w", err)
		}
		l.measured("vrf_broken_dns", "apply_ms", "ms", time.Since(begin).Seconds()*1e3)
		return nil
	})
}

// mend has names resolved in the VRF, as weir vrf doctor --fix does.
func (l *vrfLab) mend(ctx context.Context) error {
	return l.during(ctx, "vrf_fixed", "", func() (err error) {
		l.cause, l.mended, err = l.Controller.MendLookups(ctx, l.place.Root(), vrfName)
		if err != nil {
			return fmt.Errorf("mend lookups: %w", err)
		}
		return nil
	})
}

// hangUp ends the sessions.
func (l *vrfLab) hangUp() {
	for _, s := range l.sessions {
		_ = s.Close() // all that it was for is known
	}
	l.sessions = nil
}

// alive is how many of the open sessions carry data, in per cent. They are asked all at once,
// so that a dead one takes no time from the others.
func (l *vrfLab) alive(ctx context.Context) float64 {
	ctx, cancel := context.WithTimeout(ctx, survival)
	defer cancel()
	answered := make([]bool, len(l.sessions))
	var asking sync.WaitGroup
	for i, s := range l.sessions {
		asking.Go(func() {
			_, err := s.Ask(ctx, one)
			answered[i] = err == nil
		})
	}
	asking.Wait()
	n := 0
	for _, ok := range answered {
		if ok {
			n++
		}
	}
	return 100 * float64(n) / float64(len(answered))
}

// one is a request, and its answer.
var one = traffic.Requests{Size: 64, Every: time.Second, For: time.Second}

// back takes all of it back.
func (l *vrfLab) back(ctx context.Context) error {
	return l.during(ctx, "vrf_fixed", "back_", func() error {
		return errors.Join(l.Controller.UnmendLookups(l.place.Root(), vrfName), l.reset(ctx))
	})
}

// during does something and watches the link meanwhile, by each family; a word tells the metrics
// of two changes in one arm apart.
func (l *vrfLab) during(ctx context.Context, arm, word string, do func() error) error {
	for _, where := range l.toEcho {
		if err := l.passenger.Pass(ctx, where, pulse); err != nil {
			return err
		}
	}
	err := pause(ctx, before)
	if err == nil {
		err = do()
	}
	if err == nil {
		err = pause(ctx, after)
	}
	passed, unseen := l.passenger.Passed(ctx)
	if err = errors.Join(err, unseen); err != nil {
		return err
	}
	for i, p := range passed {
		l.measured(arm, word+"gap_ms"+families[i], "ms", p.Beat.Gap.Seconds()*1e3)
		l.measured(arm, word+"lost"+families[i], "", float64(p.Beat.Lost))
		if p.Dead == "" {
			l.measured(arm, word+"session_wait_ms"+families[i], "ms", p.Wait.Seconds()*1e3)
		}
	}
	return nil
}
