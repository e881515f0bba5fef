package agent

import (
	"context"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// A Step is one step of an apply in words.
type Step struct {
	Text  string   `json:"text"`
	Parts []string `json:"parts,omitempty"` // what the step itself consists of, in order
}

// Steps returns what an apply of the policy would do, in order, and does none of
// it. No steps means that it would change nothing.
func (a *Agent) Steps(ctx context.Context, p *policy.Policy) (steps []Step, err error) {
	err = a.reading(func(r *state.Record) error {
		d, err := a.proposed(ctx, r, p)
		if err != nil || d.reached(r) {
			return err
		}
		c := &change{Agent: a, verb: "apply", record: r}
		c.addAttempts(d)
		if err := c.addAll(ctx, d, nil); err != nil {
			return err
		}
		for _, s := range c.steps {
			step := Step{Text: s.text}
			if s.parts != nil {
				if step.Parts, err = s.parts(); err != nil {
					return err
				}
			}
			steps = append(steps, step)
		}
		return nil
	})
	return steps, err
}
