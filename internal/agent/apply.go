package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// Plan returns what an apply of the policy would change, in words and in order.
// It changes nothing.
func (a *Agent) Plan(ctx context.Context, p *policy.Policy) (d []plan.Difference, err error) {
	err = a.reading(func(r *state.Record) error {
		w, _, err := a.want(ctx, p, r)
		if err != nil {
			return err
		}
		have, err := a.read(r)
		if err != nil {
			return err
		}
		d = plan.Diff(have, w)
		return nil
	})
	return d, err
}

// Apply makes the policy true and proves it. It returns what it changed; nothing
// means that everything was so already. On an error all is as before, or the
// error wraps what is not.
func (a *Agent) Apply(ctx context.Context, p *policy.Policy, text []byte) (d []plan.Difference, err error) {
	err = a.locked(func(r *state.Record) error {
		if r.Pending != nil {
			return ErrPending
		}
		d, err = a.apply(ctx, r, p, text)
		return err
	})
	return d, err
}

func (a *Agent) apply(ctx context.Context, r *state.Record, p *policy.Policy, text []byte) ([]plan.Difference, error) {
	target := &state.Document{File: p.File, Text: string(text), When: a.now()}
	unfinished := r.Journal != nil
	if !unfinished {
		r.Previous = r.Applied
	}
	d, err := a.converge(ctx, "apply", r, p, target)
	if err == nil {
		return d, nil
	}
	var invalid policy.Errors
	if errors.As(err, &invalid) || r.Journal == nil {
		return nil, err
	}
	// Something is half done: back to where it was, even if the caller gave up.
	if back := a.back(context.WithoutCancel(ctx), "undo", r); back != nil {
		return d, fmt.Errorf("%w; and going back: %w; weir apply or weir reset finishes it", err, back)
	}
	return nil, fmt.Errorf("%w (%w)", err, ErrRolledBack)
}

// back returns to the policy before, or to none.
func (a *Agent) back(ctx context.Context, verb string, r *state.Record) error {
	if r.Previous == nil {
		return a.reset(ctx, verb, r)
	}
	p, err := a.parse(r.Previous)
	if err != nil {
		return err
	}
	_, err = a.converge(ctx, verb, r, p, r.Previous)
	return err
}

// converge brings the kernel to a policy from wherever it is.
func (a *Agent) converge(ctx context.Context, verb string, r *state.Record, p *policy.Policy, target *state.Document) ([]plan.Difference, error) {
	if err := a.room().Check(); err != nil {
		return nil, err
	}
	w, f, err := a.want(ctx, p, r)
	if err != nil {
		return nil, err
	}
	learnt, err := a.learnOffload(r, p, f)
	if err != nil {
		return nil, err
	}
	if learnt {
		if w, f, err = a.want(ctx, p, r); err != nil {
			return nil, err
		}
	}
	have, err := a.read(r)
	if err != nil {
		return nil, err
	}
	d := plan.Diff(have, w)
	if len(d) == 0 && r.Journal == nil {
		return nil, a.same(r, p, target)
	}
	c := &change{Agent: a, record: r}
	if err := c.reach(ctx, verb, p, w, f, have, target); err != nil {
		return nil, err
	}
	return d, c.run(ctx, verb, target)
}

// reach adds all steps that lead to a policy.
func (c *change) reach(ctx context.Context, verb string, p *policy.Policy, w *plan.Want, f plan.Facts, have plan.State, target *state.Document) error {
	if err := c.publish(ctx, p, w, f, have); err != nil {
		return err
	}
	c.addNetPrio(ctx, p, w)
	c.add("read everything back and compare", func() error { return c.prove(c.record, w) })
	c.add("remember what was applied", func() error {
		c.record.Applied = target
		if verb == "apply" {
			c.record.Rollback = nil // told, and over
		}
		c.rememberPolicy(p, []byte(target.Text))
		return nil
	})
	return nil
}

// same notes a policy that asks for nothing new. The same text again is not
// worth a write.
func (a *Agent) same(r *state.Record, p *policy.Policy, target *state.Document) error {
	if r.Applied != nil && r.Applied.Text == target.Text && r.Applied.File == target.File {
		return nil
	}
	r.Applied = target
	a.rememberPolicy(p, []byte(target.Text))
	return a.Scope.Save(r)
}

// prove reads everything back and holds it against what was wanted.
func (a *Agent) prove(r *state.Record, w *plan.Want) error {
	have, err := a.read(r)
	if err != nil {
		return err
	}
	if rest := plan.Diff(have, w); len(rest) > 0 {
		return fmt.Errorf("%w: %s", ErrNotProved, rest[0])
	}
	return nil
}
