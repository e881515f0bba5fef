package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// A comparison holds what was read back against what is wanted.
type comparison struct {
	have        plan.State
	tags        map[uint32]uint32 // process -> its tag
	differences []plan.Difference // none: the kernel holds exactly what is wanted
}

func (a *Agent) compare(ctx context.Context, r *state.Record, p *policy.Policy, w *plan.Want) (c comparison, err error) {
	if c.have, err = a.read(r); err != nil {
		return c, err
	}
	if r.Generation != 0 && plan.CgroupsDiffer(w.Rules, c.have.Rules) {
		if err := a.settle(ctx, r, p, w, &c.have); err != nil {
			return c, err
		}
	}
	if r.Generation != 0 {
		if c.tags, err = a.tags(); err != nil {
			return c, err
		}
	}
	c.differences = append(plan.Diff(c.have, w), mistagged(r, w, c.have, c.tags)...)
	return c, nil
}

// settle looks and reads once more, so that cgroups which come and go meanwhile
// are no differences.
func (a *Agent) settle(ctx context.Context, r *state.Record, p *policy.Policy, w *plan.Want, have *plan.State) error {
	after, _, _, err := a.want(ctx, p, r)
	if err != nil {
		return err
	}
	g, err := a.open(r)
	if errors.Is(err, bpf.ErrAbsent) {
		return nil // nothing changes what is not there
	}
	if err != nil {
		return err
	}
	defer g.Close()
	later, err := g.Rules()
	if err != nil {
		return err
	}
	plan.Settle(&w.Rules, &have.Rules, later, after.Rules)
	return nil
}

// prove reads everything back and holds it against what was wanted.
func (a *Agent) prove(ctx context.Context, r *state.Record, p *policy.Policy, w *plan.Want) (comparison, error) {
	c, err := a.compare(ctx, r, p, w)
	if err == nil && len(c.differences) > 0 {
		err = fmt.Errorf("%w: %s", ErrNotProved, c.differences[0])
	}
	return c, meanwhile(err)
}
