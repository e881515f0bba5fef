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
func (c *change) publish(ctx context.Context, p *policy.Policy, w *plan.Want, f plan.Facts, have plan.State) error {
	number, err := c.nextGeneration()
	if err != nil {
		return err
	}
	o, err := tableOptions(w, f)
	if err != nil {
		return err
	}
	var g *bpf.Generation
	c.add("mount the BPF file system", func() error {
		mounted, err := host.EnsureBPFFS(bpffs(c.Scope.Pins))
		if !mounted || err != nil {
			return err
		}
		c.record.BPFFS = true
		return c.save()
	})
	c.add(fmt.Sprintf("begin generation %d of the programs", number), func() (err error) {
		g, err = c.room().Begin(number, w.Rules, o)
		return err
	})
	c.add("look for cgroups that were born meanwhile, and fill the tables", func() error {
		again, _, err := c.want(ctx, p, c.record)
		if err != nil {
			return err
		}
		w.Rules.Cgroups, w.Rules.Cgroups1 = again.Rules.Cgroups, again.Rules.Cgroups1
		return g.Fill(w.Rules)
	})
	for _, name := range sortedKeys(w.Links) {
		c.addLink(name, &g, w, f.Links[name], f.Features.TCX)
	}
	c.add("follow new sockets", func() error { return g.AttachSockets(w.Rules, o) })
	for _, name := range sortedKeys(w.Links) {
		l := w.Links[name]
		c.add(fmt.Sprintf("attach link_egress to %s", name), func() error {
			return c.inScope(func() error { return c.attach(g, l.Index, f.Features) })
		})
	}
	for _, name := range sortedKeys(c.record.Links) {
		if _, wanted := w.Links[name]; !wanted {
			c.removeLink(name)
		}
	}
	c.add("make generation the one that counts", func() error {
		c.record.Generation, c.record.IDs = number, w.IDs
		return c.save()
	})
	c.add("tell open sockets whose they are", func() error { return c.sweep(ctx, w, g) })
	c.add("let out what waits below raised workloads", func() error { return c.releaseRaised(g, have, w) })
	c.add("remove older generations", func() error {
		defer g.Close()
		all, err := c.room().Generations()
		for _, n := range all {
			if n != number {
				err = errors.Join(err, c.room().RemoveGeneration(n))
			}
		}
		return err
	})
	return nil
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
