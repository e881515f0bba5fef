package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// publish adds the steps that lead to a new generation.
func (c *change) publish(ctx context.Context, d *draft) error {
	number, err := c.nextGeneration()
	if err != nil {
		return err
	}
	w, f := d.want, d.facts
	o, err := tableOptions(w, f)
	if err != nil {
		return err
	}
	c.add("mount the BPF file system", c.mountBPFFS)
	c.add(fmt.Sprintf("begin generation %d of the programs", number), func() (err error) {
		c.generation, err = c.room().Begin(number, w.Rules, o)
		return err
	})
	c.add("look for cgroups that were born meanwhile, and fill the tables", func() error { return c.fill(ctx, d) })
	c.addWaiting(d)
	for _, name := range sortedKeys(w.Links) {
		c.addLink(name, d)
	}
	c.add("follow new sockets", func() error { return c.attachSockets(w, o) })
	together, here := w.CountLimits()
	limited := together+here > 0
	if limited {
		c.add("pace connections below limits", func() error { return c.restrain(pacing, c.generation) })
	}
	for _, name := range sortedKeys(w.Links) {
		index := w.Links[name].Index
		c.addPolice(name, w.Links[name])
		c.addDetour(name, w.Links[name])
		c.add(fmt.Sprintf("attach link_egress to %s", name), func() error {
			return c.inScope(func() error { return attach(c.generation, index, f.Features.TCX) })
		})
		c.addIngress(name, w.Links[name], f.Features.TCX)
		c.addUnpolice(name, d.have.Links[name], w.Links[name])
		c.addUndetour(name, w.Links[name])
	}
	c.addReceive(ctx, w)
	c.addMemory(ctx, w)
	for _, name := range sortedKeys(c.record.Links) {
		if _, wanted := w.Links[name]; !wanted {
			c.removeLink(name)
		}
	}
	for _, name := range sortedKeys(w.Links) {
		c.addNarrow(name, d)
	}
	c.addUnwaiting(d)
	c.add("settle the limits", func() error { return c.settle(ctx, w) })
	if !limited {
		c.addLift(ctx, pacing)
	}
	c.add("make generation the one that counts", func() error {
		c.record.Generation, c.record.IDs = number, w.IDs
		return c.save()
	})
	c.add("tell open sockets whose they are", func() error { return c.sweep(ctx, w) })
	c.addMemoryOfMakers(w)
	c.add("let out what waits below raised workloads", func() error { return c.releaseRaised(d.have, w) })
	c.add("remove older generations", func() error { return c.removeGenerations(number) })
	return nil
}

// fill writes the tables. The births watch already: a cgroup that was born before
// the first look is found by it, and one that dies before it is written is
// missed by the second and taken out.
func (c *change) fill(ctx context.Context, d *draft) error {
	look := func() (plan.Rules, error) {
		again, _, _, err := c.want(ctx, d.policy, c.record)
		if err != nil {
			return plan.Rules{}, meanwhile(err)
		}
		return again.Rules, nil
	}
	found, err := look()
	if err != nil {
		return err
	}
	d.want.Rules.Cgroups, d.want.Rules.Cgroups1 = found.Cgroups, found.Cgroups1
	if err := c.generation.Fill(d.want.Rules); err != nil || len(found.Cgroups)+len(found.Cgroups1) == 0 {
		return err
	}
	later, err := look()
	if err != nil {
		return err
	}
	return c.generation.Bury(found, later)
}

func (c *change) mountBPFFS() error {
	mounted, err := host.EnsureBPFFS(bpffs(c.Scope.Pins))
	if !mounted || err != nil {
		return err
	}
	c.record.BPFFS = true
	return c.save()
}

// removeGenerations removes all but one.
func (c *change) removeGenerations(but uint32) error {
	all, err := c.room().Generations()
	for _, n := range all {
		if n != but {
			err = errors.Join(err, c.room().RemoveGeneration(n))
		}
	}
	return err
}

// meanwhile is for a policy that fitted the host when its change began, and does
// not any more: the change has failed then, the policy is not wrong.
func meanwhile(err error) error {
	var misfit policy.Errors
	if errors.As(err, &misfit) {
		return fmt.Errorf("the host has changed meanwhile: %v", misfit)
	}
	return err
}

// nextGeneration returns a number that no generation has, finished or not.
func (c *change) nextGeneration() (uint32, error) {
	all, err := c.room().Generations()
	if err != nil {
		return 0, err
	}
	next := c.record.Generation
	for _, n := range all {
		next = max(next, n)
	}
	return next + 1, nil
}

func tableOptions(w *plan.Want, f plan.Facts) (bpf.Options, error) {
	o := bpf.Options{Cgroups: max(len(w.Rules.Cgroups), len(w.Rules.Cgroups1)), Births: f.Features.RawTracepoint}
	_, o.LinkLimits = w.CountLimits()
	o.Limits, o.Times = f.Features.CanLimit(), w.Live.Sends == policy.MethodEDT
	o.Links, o.Highest, o.Bound = len(w.Links), w.IDs.Highest(), len(w.Bound)
	var err error
	if o.Hierarchy1, err = hierarchy1(w.Rules.Controller1); err != nil {
		return o, err
	}
	o.Controller, err = bpf.ControllerIndex(w.Rules.Controller1)
	return o, err
}

// fresh are the numbers that a name has now and had not before.
func fresh(old, new plan.IDs) []plan.ContractID {
	var ids []plan.ContractID
	for name, c := range new.Names {
		if old.Names[name] != c {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// bpffs is the mount point above the pins: /sys/fs/bpf, or the directory itself
// where a scope has a file system of its own.
func bpffs(pins string) string {
	const usual = "/sys/fs/bpf"
	if rel, err := filepath.Rel(usual, pins); err == nil && filepath.IsLocal(rel) {
		return usual
	}
	return filepath.Dir(pins)
}
