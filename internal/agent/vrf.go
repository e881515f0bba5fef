package agent

import (
	"context"
	"errors"
	"maps"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/vrf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/workload"
)

// domains are the scope's VRFs.
func (a *Agent) domains() vrf.Room { return vrf.Room{RunDir: a.Scope.Run} }

// addVRFs adds the steps that make the VRFs of a policy and move links into them. One that
// goes stays until the programs have changed over, which bind new sockets to it.
func (c *change) addVRFs(d *draft) {
	shall := maps.Clone(d.want.VRFs)
	in := map[string]bool{}
	for _, v := range shall {
		for _, l := range v.Links {
			in[l] = true
		}
	}
	for name, v := range d.have.VRFs {
		if _, wanted := shall[name]; !wanted {
			shall[name] = v.Staying(in)
		}
	}
	if len(shall) > 0 {
		c.add("make VRFs, and move links into them", func() error { return c.reachVRFs(shall) })
	}
}

// addUnVRFs adds the step that takes those away that nobody wants any more.
func (c *change) addUnVRFs(ctx context.Context, d *draft) {
	for name := range d.have.VRFs {
		if _, wanted := d.want.VRFs[name]; !wanted {
			c.add("let sockets out of VRFs that go", func() error { return c.unbind(ctx, d.want.VRFs) })
			c.add("move links out of VRFs that go", func() error { return c.reachVRFs(d.want.VRFs) })
			return
		}
	}
	if len(d.want.VRFs) == 0 {
		c.removeVRFs(ctx)
	}
}

func (c *change) reachVRFs(shall map[string]plan.VRF) error {
	return c.inScope(func() error { return c.domains().Apply(shall, c.breakable) })
}

// removeVRFs adds the step that takes all VRFs of ours away, if there may be any.
func (c *change) removeVRFs(ctx context.Context) {
	any, err := c.domains().Any()
	if !any && err == nil {
		return
	}
	c.add("let sockets out of their VRFs", func() error { return c.unbind(ctx, nil) })
	c.add("move links out of their VRFs, and remove those", func() error {
		return c.inScope(func() error { return c.domains().Remove(c.breakable) })
	})
}

// unbind lets go of the sockets that are bound to VRFs of ours but for those that stay: they
// were made by workloads with a contract, or accepted from there, and would reach nobody when
// the device is gone. They are where they were before by then: what comes from addresses that
// moved finds its way.
func (c *change) unbind(ctx context.Context, stay map[string]plan.VRF) error {
	devices := map[int]bool{}
	var netns uint32
	err := c.inScope(func() error {
		indexes, err := c.domains().Indexes()
		if err != nil {
			return err
		}
		for name, index := range indexes {
			if _, stays := stay[name]; !stays {
				devices[index] = true
			}
		}
		netns, err = host.NetnsNumber()
		return err
	})
	if err != nil || len(devices) == 0 {
		return err
	}
	return workload.Unbind(ctx, netns, devices)
}

// readVRFs reads back the VRFs of ours.
func (a *Agent) readVRFs() (all map[string]plan.VRF, err error) {
	err = a.inScope(func() error {
		all, err = a.domains().Read()
		return err
	})
	return all, err
}

// lookAtVRFs finds out what a policy's VRFs need to know, or what is to become of those that
// are there. Nobody else pays for a look at all routes.
func (a *Agent) lookAtVRFs(p *policy.Policy, f *plan.Facts) error {
	any, err := a.domains().Any()
	if err != nil || !any && !plan.AsksForVRF(p) {
		return err
	}
	if plan.AsksForVRF(p) {
		probeVRF(&f.Features)
	}
	f.Routing, err = a.domains().Look()
	return err
}

// WithoutVRF asks the kernel for the VRFs of a policy: the errors that they meet where it has
// none, and why that could not be found out, "" where it was. A policy without VRFs asks nothing.
func WithoutVRF(p *policy.Policy) (errs []policy.Diagnostic, unknown string) {
	if !plan.AsksForVRF(p) {
		return nil, ""
	}
	f := plan.Features{Unknown: map[string]string{}}
	probeVRF(&f)
	return plan.WithoutVRF(p, f), f.Unknown[plan.FeatureVRF]
}

// probeVRF asks the kernel whether it has routing domains of their own. That may load a
// module, so it is no part of probe.
func probeVRF(f *plan.Features) {
	err := host.VRFPossible()
	f.VRF = err == nil
	if err != nil && !errors.Is(err, host.ErrNoVRF) {
		f.Unknown[plan.FeatureVRF] = err.Error()
	}
}
