package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// A step is one thing that a change does. It may be broken off before or after
// any of them, and what is left to do is found out by looking, not remembered.
type step struct {
	text string
	run  func() error
}

// A change carries a scope from what it is to a target.
type change struct {
	*Agent
	record *state.Record
	steps  []step
}

func (c *change) add(text string, run func() error) {
	c.steps = append(c.steps, step{text, run})
}

// run writes the journal before each step and does it.
func (c *change) run(ctx context.Context, verb string, target *state.Document) error {
	j := &state.Journal{Verb: verb, When: c.now(), Steps: len(c.steps), Target: target}
	for i, s := range c.steps {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
		j.Step, j.Text, c.record.Journal = i+1, s.text, j
		if err := c.Scope.SaveJournal(j); err != nil {
			return err
		}
		if err := c.within(s.text); err != nil {
			return err
		}
		if c.Progress != nil {
			c.Progress(s.text)
		}
		if err := s.run(); err != nil {
			return fmt.Errorf("%s: %w", s.text, err)
		}
	}
	if err := c.Scope.Save(c.record); err != nil {
		return err
	}
	c.record.Journal = nil
	return c.Scope.EndJournal()
}

// within marks a place where a change may be broken off: before each step, and
// inside of those that have parts.
func (c *change) within(text string) error {
	if c.Before == nil {
		return nil
	}
	return c.Before(c.record.Journal.Step, text)
}

// save writes the record in the middle of a change: what the next one has to
// know must be on file before the kernel is changed.
func (c *change) save() error { return c.Scope.Save(c.record) }

// parse reads a policy that was applied before: it was valid then.
func (a *Agent) parse(d *state.Document) (*policy.Policy, error) {
	p, err := a.Parse(d.File, []byte(d.Text))
	if err != nil {
		return nil, fmt.Errorf("read the applied policy %s: %w", d.File, err)
	}
	return p, nil
}

// locked runs fn with the scope locked for a change and its record loaded.
func (a *Agent) locked(fn func(*state.Record) error) error {
	lock, err := a.Scope.LockForChange()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	r, err := a.Scope.Load()
	if err != nil {
		return err
	}
	return fn(r)
}

// reading runs fn with the record as it is between two changes.
func (a *Agent) reading(fn func(*state.Record) error) error {
	lock, err := a.Scope.LockForReading()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	defer lock.Unlock()
	r, err := a.Scope.Load()
	if err != nil {
		return err
	}
	return fn(r)
}

func isBusy(err error) bool { return errors.Is(err, state.ErrBusy) }
