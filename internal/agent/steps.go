package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
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
		w, f, err := a.want(ctx, p, r)
		if err != nil {
			return err
		}
		have, err := a.read(r)
		if err != nil {
			return err
		}
		if len(plan.Diff(have, w)) == 0 && r.Journal == nil {
			return nil
		}
		c := &change{Agent: a, record: r}
		if err := c.reach(ctx, "apply", p, w, f, have, nil); err != nil {
			return err
		}
		for _, s := range c.steps {
			steps = append(steps, Step{s.text, a.parts(s.text, w, f)})
		}
		return nil
	})
	return steps, err
}

// parts are the ops of the step that builds a link's queue.
func (a *Agent) parts(text string, w *plan.Want, f plan.Facts) []string {
	for name, l := range w.Links {
		if !strings.HasPrefix(text, fmt.Sprintf("build the queue of %s:", name)) {
			continue
		}
		var parts []string
		_ = a.inScope(func() error {
			ops, err := tc.Steps(l.Index, l.Queue, tc.Options{TXQueues: f.Links[name].TXQueues, Adopt: true})
			for _, op := range ops {
				parts = append(parts, op.String())
			}
			return err // apply will say it where it matters
		})
		return parts
	}
	return nil
}
