package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// Guardian is the argument, a deadline in RFC 3339 after it, with which Detach
// starts the process that takes an unconfirmed change back: it calls Guard.
const Guardian = "guard"

// ApplyUntilConfirmed applies a policy that takes itself back unless Confirm
// comes in time. The guard that takes it back is started before the first
// change, so that it acts whatever happens to the caller.
func (a *Agent) ApplyUntilConfirmed(ctx context.Context, p *policy.Policy, text []byte, wait time.Duration) (d []plan.Difference, err error) {
	err = a.locked(func(r *state.Record) error {
		if r.Pending != nil {
			return ErrPending
		}
		// A policy that does not fit the host is refused before anything starts.
		if _, _, err := a.want(ctx, p, r); err != nil {
			return err
		}
		// The guard finds the pending change from its first look on, or ends.
		r.Pending, r.Rollback = &state.Pending{Deadline: a.now().Add(wait).Round(0)}, nil
		if err := a.Scope.Save(r); err != nil {
			return err
		}
		r.Pending.Guard, err = a.Detach(Guardian, r.Pending.Deadline.Format(time.RFC3339Nano))
		if err != nil {
			r.Pending = nil
			return errors.Join(fmt.Errorf("start the guard that takes the change back: %w", err), a.Scope.Save(r))
		}
		if err := a.Scope.Save(r); err != nil {
			return err
		}
		if d, err = a.apply(ctx, r, p, text); err != nil || len(d) == 0 {
			r.Pending = nil // nothing to take back
			if saved := a.Scope.Save(r); saved != nil && err == nil {
				err = saved
			}
		}
		return err
	})
	return d, err
}

// Confirm keeps a change that waits for it.
func (a *Agent) Confirm() error {
	return a.locked(func(r *state.Record) error {
		switch {
		case r.Pending == nil:
			return ErrNothingPending
		case r.Journal != nil:
			return fmt.Errorf("%w at %q: half a change can not be kept", ErrUnfinished, r.Journal.Text)
		}
		r.Pending = nil
		return a.Scope.Save(r)
	})
}

// Rollback returns to the policy before the last apply, or to none, and proves
// it by reading everything back. reason is remembered for those who were absent.
func (a *Agent) Rollback(ctx context.Context, reason string) error {
	return a.locked(func(r *state.Record) error {
		if r.Pending == nil {
			return ErrNothingPending
		}
		return a.rollback(ctx, r, reason)
	})
}

func (a *Agent) rollback(ctx context.Context, r *state.Record, reason string) error {
	r.Pending = nil
	r.Rollback = &state.Rollback{When: a.now(), Reason: reason}
	if err := a.back(ctx, "rollback", r); err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	r.Rollback.Proved = true // back proves what it does
	return a.Scope.Save(r)
}

// Guard waits for the deadline of a pending change and takes it back, unless it
// was confirmed or taken back before. It returns whether it acted.
func (a *Agent) Guard(ctx context.Context, deadline time.Time) (acted bool, err error) {
	const look = 200 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		r, err := a.Scope.Load()
		if err != nil {
			return false, err
		}
		if r.Pending == nil || !r.Pending.Deadline.Equal(deadline) {
			return false, nil // confirmed, taken back by somebody, or nothing was changed
		}
		if !a.now().Before(deadline) {
			return a.takeBack(ctx, deadline)
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}

// takeBack rolls back as soon as no other change is under way: an apply that
// hangs or was stopped holds the lock for as long as its process lives.
func (a *Agent) takeBack(ctx context.Context, deadline time.Time) (acted bool, err error) {
	const look = 200 * time.Millisecond
	for {
		err := a.locked(func(r *state.Record) error {
			if r.Pending == nil || !r.Pending.Deadline.Equal(deadline) {
				return nil
			}
			acted = true
			return a.rollback(ctx, r, "no confirmation came before "+deadline.Format(time.TimeOnly))
		})
		if err == nil || !isBusy(err) {
			return acted, err
		}
		select {
		case <-ctx.Done():
			return acted, ctx.Err()
		case <-time.After(look):
		}
	}
}
