package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// Guardian is the argument, a deadline in RFC 3339 after it, with which Detach
// starts the process that takes an unconfirmed change back: it calls Guard.
const Guardian = "guard"

// guardStart is how long a guard may take to start. Nothing has changed until then.
const guardStart = 30 * time.Second

// arm starts the guard of a change, which acts whatever happens to the caller,
// and returns when it watches: from then on the change may begin.
func (a *Agent) arm(ctx context.Context, r *state.Record, wait time.Duration) (err error) {
	if a.Detach == nil {
		return errors.New("start the guard that takes the change back: nothing to start it with")
	}
	// The guard finds the pending change from its first look on, or ends.
	told := r.Rollback
	r.Pending, r.Rollback = &state.Pending{Deadline: a.now().Add(wait).Round(0)}, nil
	defer func() {
		if err != nil {
			r.Rollback = told
			err = errors.Join(fmt.Errorf("start the guard that takes the change back: %w", err), a.disarm(r))
		}
	}()
	if err := a.Scope.Save(r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, guardStart, errors.New("it does not start"))
	defer cancel()
	// That of the change before sees that its own is not pending any more.
	if err := a.awaitGuard(ctx, 0); err != nil {
		return err
	}
	if r.Pending.Guard, err = a.Detach(Guardian, r.Pending.Deadline.Format(time.RFC3339Nano)); err != nil {
		return err
	}
	if err := a.awaitGuard(ctx, r.Pending.Guard); err != nil {
		return err
	}
	return a.Scope.Save(r)
}

// awaitGuard returns when a guard lives, or, without one to wait for, when none
// does.
func (a *Agent) awaitGuard(ctx context.Context, guard int) error {
	const look = 5 * time.Millisecond
	for {
		lives, err := a.Scope.Guarded()
		if err != nil || lives == (guard != 0) {
			return err
		}
		if guard != 0 {
			if p, err := workload.ReadProcess(uint32(guard)); err != nil || p.Zombie {
				return errors.New("it has ended at once")
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(look):
		}
	}
}

// Guard waits for the deadline of a pending change and takes it back, unless it
// was confirmed or taken back before. It returns whether it acted. Setting the
// clock meanwhile neither hurries nor delays it.
func (a *Agent) Guard(ctx context.Context, deadline time.Time) (acted bool, err error) {
	const (
		look     = 200 * time.Millisecond
		attempts = 5
	)
	lock, err := a.Scope.LockAsGuard()
	if err != nil {
		return false, err
	}
	defer lock.Unlock()
	over := time.After(deadline.Sub(a.now()))
	tick := time.NewTicker(look)
	defer tick.Stop()
	file := state.Look{Scope: a.Scope}
	for due, failed := false, 0; ; {
		if r, err := file.Record(); err == nil && !waits(r, deadline) {
			return false, nil // confirmed, taken back by somebody, or nothing was changed
		}
		if due {
			// An apply that hangs or was stopped holds the lock for as long as its
			// process lives: as soon as no other change is under way.
			acted, err := a.takeBack(ctx, deadline)
			if !errors.Is(err, state.ErrBusy) {
				failed++
			}
			if err == nil || failed == attempts {
				return acted, err
			}
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-over:
			due = true
		case <-tick.C:
		}
	}
}

func (a *Agent) takeBack(ctx context.Context, deadline time.Time) (acted bool, err error) {
	err = a.locked(func(r *state.Record) error {
		if !waits(r, deadline) {
			return nil
		}
		acted = true
		return a.rollback(ctx, r, "no confirmation came before "+deadline.Format(time.TimeOnly))
	})
	return acted, err
}

// waits reports whether the change with that deadline is pending.
func waits(r *state.Record, deadline time.Time) bool {
	return r.Pending != nil && r.Pending.Deadline.Equal(deadline)
}
