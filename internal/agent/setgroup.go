package agent

import (
	"context"
	"fmt"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// SetGroup gives a running cgroup or unit a priority, before anything that the
// policy says of it. Its open connections are included.
func (a *Agent) SetGroup(ctx context.Context, s policy.Selector, priority policy.Priority) error {
	name := "set " + s.String()
	return a.regroup(ctx, func(r *state.Record) bool {
		removeSet(r, name)
		r.Sets = append(r.Sets, state.Set{Name: name, Selector: &s, Priority: priority})
		return true
	})
}

// ClearGroup takes back what SetGroup gave. A group that was given nothing is
// fine.
func (a *Agent) ClearGroup(ctx context.Context, s policy.Selector) error {
	name := "set " + s.String()
	return a.regroup(ctx, func(r *state.Record) bool {
		_, known := findSet(r, name)
		removeSet(r, name)
		return known
	})
}

// regroup changes the sets and publishes the policy that is applied once more,
// with them. On an error the sets are as before.
func (a *Agent) regroup(ctx context.Context, edit func(*state.Record) bool) error {
	return a.locked(func(r *state.Record) error {
		switch {
		case r.Journal != nil:
			return fmt.Errorf("%w at %q", ErrUnfinished, r.Journal.Text)
		case r.Applied == nil:
			return ErrNothingApplied
		}
		before := append([]state.Set(nil), r.Sets...)
		if !edit(r) {
			return nil
		}
		p, err := a.parse(r.Applied)
		if err != nil {
			return err
		}
		if _, err := a.converge(ctx, "set", r, p, r.Applied); err != nil {
			r.Sets = before
			if r.Journal == nil {
				return err
			}
			_, back := a.converge(context.WithoutCancel(ctx), "undo", r, p, r.Applied)
			if back != nil {
				return fmt.Errorf("%w; and going back: %w", err, back)
			}
			return fmt.Errorf("%w (%w)", err, ErrRolledBack)
		}
		return nil
	})
}
