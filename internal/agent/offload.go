package agent

import (
	"fmt"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// addAttempts adds the steps that try mqprio in hardware on the links whose
// policy asks for mqprio, once for each device: only an attempt tells, and an
// attempt may reset the link, so links that are left to the ladder are not tried.
// What was learnt is in the record, where plan and status find it. A root of
// somebody else's is not taken away for an attempt.
func (c *change) addAttempts(d *draft) {
	for _, l := range d.policy.Links {
		device := d.facts.Links[l.Name]
		if _, known := c.record.Offload[device.Index]; known || l.Scheduler != policy.MQPrio {
			continue
		}
		if !device.Root.Default && device.Root.Handle>>16 != plan.RootHandle {
			continue
		}
		device.MQPrioHW = true
		rung, _ := plan.Choose(l, plan.Demand{}, device, d.facts.Features)
		c.addRemember(l.Name, device)
		c.add(fmt.Sprintf("try mqprio in the hardware of %s; what follows depends on it", l.Name), func() (err error) {
			var takes bool
			err = c.inScope(func() (err error) {
				takes, err = tc.TryOffload(device.Index, rung.Queue, tc.Options{TXQueues: device.TXQueues})
				return err
			})
			if err != nil {
				return err
			}
			if c.record.Offload == nil {
				c.record.Offload = map[int]bool{}
			}
			c.record.Offload[device.Index] = takes
			return c.save()
		})
	}
}

// withOffload adds to the facts what was learnt of the devices.
func withOffload(f plan.Facts, r *state.Record) plan.Facts {
	for name, l := range f.Links {
		if r.Offload[l.Index] {
			l.MQPrioHW = true
			f.Links[name] = l
		}
	}
	return f
}
