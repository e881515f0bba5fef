package agent

import (
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// learnOffload tries mqprio in hardware on the links whose policy asks for
// mqprio, once: only an attempt tells, and an attempt may reset the link, so
// links that are left to the ladder are not tried. What was learnt is in the
// record, where plan and status find it. It reports whether it learnt anything.
func (a *Agent) learnOffload(r *state.Record, p *policy.Policy, f plan.Facts) (learnt bool, err error) {
	for _, l := range p.Links {
		device := f.Links[l.Name]
		if _, known := r.Offload[l.Name]; known || l.Scheduler != policy.MQPrio || !device.Root.Default {
			continue
		}
		device.MQPrioHW = true
		rung, _ := plan.Choose(l, device, f.Features)
		var takes bool
		err := a.inScope(func() (err error) {
			takes, err = tc.TryOffload(device.Index, rung.Queue, tc.Options{TXQueues: device.TXQueues})
			return err
		})
		if err != nil {
			return learnt, err
		}
		if r.Offload == nil {
			r.Offload = map[string]bool{}
		}
		r.Offload[l.Name], learnt = takes, true
		if err := a.Scope.Save(r); err != nil {
			return learnt, err
		}
	}
	return learnt, nil
}

// withOffload adds to the facts what was learnt of the devices.
func withOffload(f plan.Facts, r *state.Record) plan.Facts {
	for name, takes := range r.Offload {
		if l, ok := f.Links[name]; ok && takes {
			l.MQPrioHW = true
			f.Links[name] = l
		}
	}
	return f
}
