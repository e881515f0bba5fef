package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// Where answers wait in a class, it comes and goes with all else that is applied: a contract that has
// one, or had one, is not written in place.

// setByClass is Set of such a contract. It is in force before the first packet is charged to it.
func (a *Agent) setByClass(ctx context.Context, g *bpf.Generation, r *state.Record, s state.Set, p workload.Process, known bool) error {
	if !known {
		if err := a.forget(g, r, s.Name); err != nil {
			return err
		}
	}
	before := slices.Clone(r.Sets)
	removeSet(r, s.Name)
	r.Sets = append(r.Sets, s)
	if err := a.republish(ctx, r, before); err != nil {
		return err
	}
	g, err := a.current(r)
	if err != nil {
		return err
	}
	defer g.Close()
	always := context.WithoutCancel(ctx)
	if err = a.raise(ctx, g, r, s, p); err != nil && !known {
		err = errors.Join(err, a.withdraw(always, g, r, s.Name), a.dropClasses(always, r))
	}
	return errors.Join(err, a.followBounds(always, g))
}

// hasClass reports whether answers of a contract wait in a class.
func hasClass(r *state.Record, name string) bool {
	_, has := r.IDs.Shares[plan.WaitingRoom][name]
	return has
}

// dropClasses takes away the classes of contracts that are there no more.
func (a *Agent) dropClasses(ctx context.Context, r *state.Record) error {
	for name := range r.IDs.Shares[plan.WaitingRoom] {
		if _, known := r.IDs.Names[name]; !known {
			return a.republish(ctx, r, r.Sets)
		}
	}
	return nil
}
