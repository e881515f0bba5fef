package agent

import (
	"context"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// A LimitStatus says on which rung a limit of what a workload sends is held.
type LimitStatus struct {
	Workload string   `json:"workload"`
	Link     string   `json:"link"` // "*" of all links together
	Rung     string   `json:"rung"` // "pace" or "htb"
	Why      string   `json:"why"`
	Lacks    []string `json:"lacks,omitempty"` // what the rung does not promise
}

// addLimits tells of the rungs.
func (s *Status) addLimits(rungs plan.LimitRungs) {
	for _, workload := range sortedKeys(rungs) {
		for _, link := range sortedKeys(rungs[workload]) {
			r := rungs[workload][link]
			s.Limits = append(s.Limits, LimitStatus{workload, link, string(r.Method), r.Why, r.Lacks})
		}
	}
}

// howLimited are the rungs of the limits that are in force.
func (a *Agent) howLimited(ctx context.Context, r *state.Record) (plan.LimitRungs, error) {
	p, err := a.parse(r.Applied)
	if err != nil {
		return nil, err
	}
	f := plan.Facts{Root: true}
	err = a.inScope(func() (err error) {
		f.Features = a.features(ctx)
		f.Links, err = host.Links(ctx)
		return err
	})
	return plan.HowLimited(withSets(p, r.Sets), f), err
}
