package agent

import (
	"context"
	"fmt"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// canBound returns ErrNoBounds where the terms bound the memory of sockets and nothing can.
func (a *Agent) canBound(ctx context.Context, t Terms) error {
	if !t.bounds() {
		return nil
	}
	return a.inScope(func() error {
		f := a.features(ctx)
		if lacks := f.NoMemory(); len(lacks) > 0 {
			return fmt.Errorf("%w: %s", ErrNoBounds, lacks[0])
		}
		return nil
	})
}

// live says how limits are held beside the policy that is applied. It returns ErrNoLimits
// where the terms give one that nothing holds, and ErrNoTimes where answers shall wait for one and can not.
func (a *Agent) live(ctx context.Context, r *state.Record, t Terms) (plan.Live, error) {
	f := plan.Facts{Root: true}
	err := a.inScope(func() (err error) {
		f.Features = a.features(ctx)
		f.Links, err = host.Links(ctx)
		return err
	})
	if err != nil {
		return plan.Live{}, err
	}
	followNames(r, f.Links)
	if lacks := f.Features.NoLimits(); t.receives() && len(lacks) > 0 {
		return plan.Live{}, fmt.Errorf("%w: %s, and nothing else holds what sockets receive", ErrNoLimits, lacks[0])
	}
	queues := queuesOf(r)
	if t.receives() {
		if why := plan.NoAnswers(t.ByIngress, queues, f); why != "" {
			return plan.Live{}, fmt.Errorf("%w: %s", ErrNoTimes, why)
		}
	}
	how, why := plan.LiveOn(queues, f)
	if t.sends() && why != "" {
		return how, fmt.Errorf("%w: %s", ErrNoLimits, why)
	}
	return how, nil
}

// queuesOf are the queues of the links under contract.
func queuesOf(r *state.Record) map[string]plan.Queue {
	queues := make(map[string]plan.Queue, len(r.Links))
	for name, l := range r.Links {
		queues[name] = l.Queue
	}
	return queues
}
