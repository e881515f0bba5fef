package agent

import (
	"context"
	"fmt"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/state"
)

// A step is one thing that a change does. It may be broken off before or after
// any of them, and what is left to do is found out by looking, not remembered.
type step struct {
	text  string
	run   func() error
	parts func() ([]string, error) // of what the step itself consists, in words; may be nil
}

// A change carries a scope from what it is to a target.
type change struct {
	*Agent
	verb       string // as the journal has it
	record     *state.Record
	steps      []step
	generation *bpf.Generation // the one that is being built
	beside     bool            // nothing of the policy is touched: what was proved of it stays so
}

func (c *change) add(text string, run func() error) {
	c.steps = append(c.steps, step{text: text, run: run})
}

// run writes the journal before each step and does it. What was proved before is
// not any more.
func (c *change) run(ctx context.Context) error {
	// What the next one has to know is on file before the journal says that
	// there is something to finish.
	if err := c.save(); err != nil {
		return err
	}
	if !c.beside {
		if err := c.Scope.DropProof(); err != nil {
			return err
		}
	}
	j := &state.Journal{Verb: c.verb, When: c.now(), Steps: len(c.steps)}
	for i, s := range c.steps {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", c.verb, err)
		}
		j.Step, j.Text, c.record.Journal = i+1, s.text, j
		if err := c.Scope.SaveJournal(j); err != nil {
			return err
		}
		if err := c.breakable(s.text); err != nil {
			return err
		}
		if c.Progress != nil {
			c.Progress(s.text)
		}
		if err := s.run(); err != nil {
			return fmt.Errorf("%s: %w", s.text, err)
		}
	}
	return nil
}

// end says that the change is whole. Its steps have saved what there is to know.
func (c *change) end() error {
	c.record.Journal = nil
	return c.Scope.EndJournal()
}

// close releases what the steps have opened; what they made stays.
func (c *change) close() {
	if c.generation != nil {
		c.generation.Close()
	}
}

// breakable marks a place where a change may be broken off: before each step,
// and inside of those that have parts.
func (c *change) breakable(text string) error {
	if c.Before == nil {
		return nil
	}
	return c.Before(c.record.Journal.Step, text)
}

// save writes the record in the middle of a change: what the next one has to
// know must be on file before the kernel is changed.
func (c *change) save() error { return c.Scope.Save(c.record) }
