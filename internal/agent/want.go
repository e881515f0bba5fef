package agent

import (
	"context"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// want turns a policy and what was set beside it into the state to reach.
// skipped is what could not be looked at, in words.
func (a *Agent) want(ctx context.Context, p *policy.Policy, r *state.Record) (w *plan.Want, f plan.Facts, skipped []string, err error) {
	p = withSets(p, r.Sets)
	if f, skipped, err = a.facts(ctx, p); err != nil {
		return nil, f, skipped, err
	}
	f = withOffload(f, r)
	w, errs := plan.Wanted(p, f, r.IDs, explicit(r.Sets))
	if len(errs) > 0 {
		return nil, f, skipped, policy.Errors(errs)
	}
	return w, f, skipped, nil
}

// withSets puts the workloads that weir set made of cgroups and units before
// the policy's own: of two claims on one cgroup the first has it.
func withSets(p *policy.Policy, sets []state.Set) *policy.Policy {
	var extra []policy.Workload
	for _, s := range sets {
		if s.Selector == nil {
			continue
		}
		extra = append(extra, policy.Workload{
			Name: s.Name, Match: []policy.Selector{*s.Selector},
			Contract: s.Contract(), Via: s.Via, Beside: true,
		})
	}
	if extra == nil {
		return p
	}
	q := *p
	q.Workloads = append(extra, p.Workloads...)
	return &q
}

// explicit are the contracts of single processes.
func explicit(sets []state.Set) []plan.Explicit {
	var all []plan.Explicit
	for _, s := range sets {
		if s.Selector == nil && s.Via == policy.ViaBPF {
			all = append(all, plan.Explicit{Name: s.Name, Contract: s.Contract()})
		}
	}
	return all
}
