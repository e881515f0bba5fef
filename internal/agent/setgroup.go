package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// SetGroup gives a running cgroup or unit a contract, before anything that the
// policy says of it. Its open connections are included. A second SetGroup changes
// the first. It returns ErrNoLimits where a limit is not possible, ErrNoBounds where a
// bound of memory is not, and ErrNoBinding or ErrUnknownVRF where sockets can not be bound to
// a VRF.
func (a *Agent) SetGroup(ctx context.Context, s policy.Selector, t Terms) error {
	return a.regroup(ctx, func(r *state.Record) (bool, error) {
		if err := errors.Join(a.canBound(ctx, t), a.canBind(ctx, t)); err != nil {
			return false, err
		}
		if t.limits() {
			if _, err := a.live(ctx, r, t); err != nil {
				return false, err
			}
		}
		set := state.Set{Name: groupSetName(s), Selector: &s}
		old, known := findSet(r, set.Name)
		if known {
			set = old
		}
		set, nothing := t.of(set, known)
		removeSet(r, set.Name)
		if !nothing {
			r.Sets = append(r.Sets, set)
		}
		return known || !nothing, nil
	})
}

// ClearGroup takes back what SetGroup gave. A group that was given nothing is
// fine.
func (a *Agent) ClearGroup(ctx context.Context, s policy.Selector) error {
	return a.regroup(ctx, func(r *state.Record) (bool, error) {
		_, known := findSet(r, groupSetName(s))
		removeSet(r, groupSetName(s))
		return known, nil
	})
}

func groupSetName(s policy.Selector) string { return "set " + s.String() }

// regroup changes the sets and publishes the policy that is applied once more,
// with them. On an error the sets are as before.
func (a *Agent) regroup(ctx context.Context, edit func(*state.Record) (bool, error)) error {
	return a.locked(func(r *state.Record) error {
		switch {
		case r.Journal != nil:
			return fmt.Errorf("%w at %q", ErrUnfinished, r.Journal.Text)
		case r.Applied == nil:
			return ErrNothingApplied
		}
		before := slices.Clone(r.Sets)
		if changed, err := edit(r); err != nil || !changed {
			return err
		}
		return a.republish(ctx, r, before)
	})
}

// republish publishes the policy that is applied once more, as the sets have changed. On an error
// they are as before.
func (a *Agent) republish(ctx context.Context, r *state.Record, before []state.Set) error {
	if r.Pending == nil {
		r.Previous = r.Applied
	}
	err := a.converge(ctx, "set", r, r.Applied)
	if err == nil {
		return a.Scope.Save(r) // what the kernel holds may be the same
	}
	r.Sets = before
	if r.Journal == nil {
		return err
	}
	if back := a.converge(context.WithoutCancel(ctx), "undo", r, r.Applied); back != nil {
		return fmt.Errorf("%w; and going back: %w", err, back)
	}
	return fmt.Errorf("%w (%w)", err, ErrRolledBack)
}
