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

// An Applied is what an apply has done.
type Applied struct {
	Changes []plan.Difference // none: everything was so already
	Status  *Status           // by the very reading that proved it
}

// Apply makes the policy true and proves it. On an error all is as before, or the
// error wraps what is not.
func (a *Agent) Apply(ctx context.Context, p *policy.Policy, text []byte) (*Applied, error) {
	return a.apply(ctx, p, text, 0)
}

// apply is Apply, and with a wait ApplyUntilConfirmed.
func (a *Agent) apply(ctx context.Context, p *policy.Policy, text []byte, wait time.Duration) (done *Applied, err error) {
	err = a.locked(func(r *state.Record) error {
		if r.Pending != nil {
			return ErrPending
		}
		d, err := a.proposed(ctx, r, p)
		if err != nil {
			return err
		}
		if err := a.accepted(r, d); err != nil {
			return err
		}
		changes, target := d.differences, &state.Document{File: p.File, Text: string(text), When: a.now()}
		if d.reached(r) {
			err = a.same("apply", r, d, target)
		} else {
			d, err = a.carryOut(ctx, r, d, target, wait)
		}
		if err != nil {
			return err
		}
		done = &Applied{changes, a.judge(r, d)}
		return nil
	})
	return done, err
}

// carryOut applies a draft, or goes back to where it began.
func (a *Agent) carryOut(ctx context.Context, r *state.Record, d *draft, target *state.Document, wait time.Duration) (*draft, error) {
	if r.Journal == nil {
		r.Previous = r.Applied
	}
	if wait > 0 {
		if err := a.arm(ctx, r, wait); err != nil {
			return nil, err
		}
	}
	changes := len(d.differences)
	proved, err := a.reach(ctx, "apply", r, d, target)
	if err == nil && changes == 0 { // what had been broken off is whole now: nothing to take back
		err = a.disarm(r)
	}
	if err == nil {
		return proved, nil
	}
	if r.Journal != nil {
		// Something is half done: back to where it was, even if the caller gave up.
		misfit, back := a.back(context.WithoutCancel(ctx), "undo", r)
		if back != nil { // the guard, if there is one, tries again
			return nil, fmt.Errorf("%w; and going back: %w; weir apply or weir reset finishes it", err, back)
		}
		err = fmt.Errorf("%w (%w%s)", err, ErrRolledBack, misfit)
	}
	return nil, errors.Join(err, a.disarm(r))
}

// back returns to the policy before, or to none: also where that policy does not
// fit the host any more, which misfit says then. What was cut off must come back,
// though a process that a policy names has ended meanwhile.
func (a *Agent) back(ctx context.Context, verb string, r *state.Record) (misfit string, err error) {
	if r.Previous != nil {
		err := a.converge(ctx, verb, r, r.Previous)
		var misfits policy.Errors
		if !errors.As(err, &misfits) {
			return "", err
		}
		misfit = fmt.Sprintf("; the policy before does not fit this host any more, so none is in force: %v", misfits)
	}
	return misfit, a.reset(ctx, verb, r)
}

// converge brings the kernel to a policy that was applied before, from wherever
// it is.
func (a *Agent) converge(ctx context.Context, verb string, r *state.Record, target *state.Document) error {
	p, err := a.parse(target)
	if err != nil {
		return err
	}
	d, err := a.draft(ctx, r, p)
	if err != nil {
		return err
	}
	if d.reached(r) {
		return a.same(verb, r, d, target)
	}
	_, err = a.reach(ctx, verb, r, d, target)
	return err
}

// reach does what leads from what a draft has found to what it wants, and proves
// it. It returns the draft as it was proved: without differences.
func (a *Agent) reach(ctx context.Context, verb string, r *state.Record, d *draft, target *state.Document) (*draft, error) {
	c := &change{Agent: a, verb: verb, record: r}
	defer c.close()
	if c.addAttempts(d); len(c.steps) > 0 {
		if err := c.run(ctx); err != nil {
			return nil, err
		}
		c.steps = nil
		learnt, err := a.draft(ctx, r, d.policy) // what was learnt changes what is wanted
		if err != nil {
			return nil, meanwhile(err)
		}
		d = learnt
	}
	if err := c.addAll(ctx, d, target); err != nil {
		return nil, err
	}
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	return d, c.end()
}

// addAll adds all steps that lead to a draft's policy.
func (c *change) addAll(ctx context.Context, d *draft, target *state.Document) error {
	c.addVRFs(d)
	if err := c.publish(ctx, d); err != nil {
		return err
	}
	c.addUnVRFs(ctx, d)
	c.addNetPrio(ctx, d)
	c.addMemcg(d.want)
	c.add("read everything back and compare", func() (err error) {
		d.comparison, err = c.prove(ctx, c.record, d.policy, d.want)
		return err
	})
	c.add("remember what was applied", func() error {
		c.record.Applied = target
		if c.verb == "apply" {
			c.record.Rollback = nil // told, and over
		}
		c.rememberPolicy(d.policy, []byte(target.Text))
		if err := c.save(); err != nil {
			return err
		}
		return c.proved(c.verb, c.record)
	})
	return nil
}

// same notes a policy that asks for nothing new, which is a proof as well. The
// same text again is not worth writing the record.
func (a *Agent) same(verb string, r *state.Record, d *draft, target *state.Document) error {
	if r.Applied == nil || r.Applied.Text != target.Text || r.Applied.File != target.File {
		r.Applied = target
		a.rememberPolicy(d.policy, []byte(target.Text))
		if err := a.Scope.Save(r); err != nil {
			return err
		}
	}
	return a.proved(verb, r)
}

// proved notes that everything was read back and found as it is wanted.
func (a *Agent) proved(verb string, r *state.Record) error {
	r.Proof = &state.Proof{When: a.now(), Verb: verb}
	return a.Scope.SaveProof(*r.Proof)
}
