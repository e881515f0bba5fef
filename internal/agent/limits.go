package agent

import (
	"context"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// A LimitStatus says on which rung a limit is held: of what a workload sends or receives, or
// of a link itself.
type LimitStatus struct {
	Workload string   `json:"workload"` // "": whatever the link carries
	Link     string   `json:"link"`     // "*" of all links together, or what sockets receive
	Promise  string   `json:"promise"`  // "egress" or "ingress"
	Rung     string   `json:"rung"`     // "pace", "edt", "htb", "police" or "ifb"
	Why      string   `json:"why"`
	Lacks    []string `json:"lacks,omitempty"` // what the rung does not promise
}

// addLimits tells of the rungs.
func (s *Status) addLimits(w *plan.Want) {
	add := func(workload, link, promise string, r plan.LimitRung) {
		s.Limits = append(s.Limits, LimitStatus{workload, link, promise, string(r.Method), r.Why, r.Lacks})
	}
	for _, link := range sortedKeys(w.OwnRungs) {
		for _, promise := range sortedKeys(w.OwnRungs[link]) {
			add("", link, promise, w.OwnRungs[link][promise])
		}
	}
	for _, workload := range sortedKeys(w.Received) {
		add(workload, plan.EveryLink, plan.PromiseIngress, w.Received[workload])
	}
	for _, workload := range sortedKeys(w.LimitRungs) {
		for _, link := range sortedKeys(w.LimitRungs[workload]) {
			add(workload, link, plan.PromiseEgress, w.LimitRungs[workload][link])
		}
	}
}

// NoLimit says why this kernel can not hold what a workload sends to a limit by a method;
// "" where it can, on a link that suits it.
func (a *Agent) NoLimit(ctx context.Context, by policy.Method) string {
	_, why := plan.ChooseLimit(policy.Limit{Method: by}, nil, nil, plan.Facts{Features: a.features(ctx)})
	return why
}

// NoReceiving is NoLimit of what a workload receives, on a link of Ethernet whose scheduler suits the method.
func (a *Agent) NoReceiving(ctx context.Context, by policy.Method) string {
	const link = "any"
	f := plan.Facts{Features: a.features(ctx), Links: map[string]plan.LinkFacts{link: {Ethernet: true}}}
	_, why := plan.ChooseReceive(policy.Limit{Max: policy.MinRate, Method: by}, []policy.Link{{Name: link, Scheduler: policy.FQ}}, nil, f)
	return why
}

// howLimited are the rungs of the limits that are in force: of what workloads send, and
// receive.
func (a *Agent) howLimited(ctx context.Context, r *state.Record) (plan.LimitRungs, plan.ReceiveRungs, error) {
	p, err := a.parse(r.Applied)
	if err != nil {
		return nil, nil, err
	}
	f := plan.Facts{Root: true}
	err = a.inScope(func() (err error) {
		f.Features = a.features(ctx)
		f.Links, err = host.Links(ctx)
		return err
	})
	p = withSets(p, r.Sets)
	received := plan.HowReceived(p, f)
	received.Follow(p, queuesOf(r), f.Features)
	return plan.HowLimited(p, f), received, err
}
