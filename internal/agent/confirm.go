package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// ApplyUntilConfirmed applies a policy that takes itself back unless Confirm
// comes in time. Where there is nothing to do nothing waits.
func (a *Agent) ApplyUntilConfirmed(ctx context.Context, p *policy.Policy, text []byte, wait time.Duration) (*Applied, error) {
	return a.apply(ctx, p, text, wait)
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
		return a.disarm(r)
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

// rollback leaves the change pending until all of it is taken back, so that who
// finds it broken off can try again.
func (a *Agent) rollback(ctx context.Context, r *state.Record, reason string) error {
	r.Rollback = &state.Rollback{When: a.now(), Reason: reason}
	misfit, err := a.back(ctx, "rollback", r)
	if err != nil {
		return errors.Join(fmt.Errorf("roll back: %w", err), a.Scope.Save(r))
	}
	r.Rollback.Reason += misfit
	r.Rollback.Proved = true // back proves what it does
	r.Pending = nil
	return a.Scope.Save(r)
}

// disarm lets the guard of a pending change end.
func (a *Agent) disarm(r *state.Record) error {
	if r.Pending == nil {
		return nil
	}
	r.Pending = nil
	return a.Scope.Save(r)
}
