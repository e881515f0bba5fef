package traffic

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// An alarm wakes its goroutine when something is due, as exactly as the kernel's timers do: those of Go are up to a
// millisecond late, which is more than what many a request takes.
type alarm struct {
	ctx context.Context
}

// A nap is the longest that an alarm sleeps before it looks whether its context has ended.
const nap = 50 * time.Millisecond

// newAlarm takes the goroutine's thread, which ends with it.
func newAlarm(ctx context.Context) (alarm, error) {
	if err := hurry(); err != nil {
		return alarm{}, err
	}
	return alarm{ctx}, unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}

// at waits until then, and reports whether that came before the context ended.
func (a alarm) at(then time.Time) bool {
	for a.ctx.Err() == nil {
		left := time.Until(then)
		if left <= 0 {
			return true
		}
		// A signal ends it early: Go sends itself some.
		pause := unix.NsecToTimespec(int64(min(left, nap)))
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &pause, nil)
	}
	return false
}
