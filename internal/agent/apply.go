package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// Plan returns what an apply of the policy would change, in words and in order.
// It changes nothing.
func (a *Agent) Plan(ctx context.Context, p *policy.Policy) (d []plan.Difference, err error) {
	err = a.reading(func(r *state.Record) error {
		w, _, err := a.want(ctx, p, r)
		if err != nil {
			return err
		}
		have, err := a.read(r)
		if err != nil {
			return err
		}
		d = plan.Diff(have, w)
		return nil
	})
	return d, err
}

// Apply makes the policy true and proves it. It returns what it changed; nothing
// means that everything was so already. On an error all is as before, or the
// error wraps what is not.
func (a *Agent) Apply(ctx context.Context, p *policy.Policy, text []byte) (d []plan.Difference, err error) {
	err = a.locked(func(r *state.Record) error {
		if r.Pending != nil {
			return ErrPending
		}
		d, err = a.apply(ctx, r, p, text)
		return err
	})
	return d, err
}

func (a *Agent) apply(ctx context.Context, r *state.Record, p *policy.Policy, text []byte) ([]plan.Difference, error) {
	target := &state.Document{File: p.File, Text: string(text), When: a.now()}
	unfinished := r.Journal != nil
	if !unfinished {
		r.Previous = r.Applied
	}
	d, err := a.converge(ctx, "apply", r, p, target)
	if err == nil {
		return d, nil
	}
	var invalid policy.Errors
	if errors.As(err, &invalid) || r.Journal == nil {
		return nil, err
	}
	// Something is half done: back to where it was, even if the caller gave up.
	if back := a.back(context.WithoutCancel(ctx), "undo", r); back != nil {
		return d, fmt.Errorf("%w; and going back: %w; weir apply or weir reset finishes it", err, back)
	}
	return nil, fmt.Errorf("%w (%w)", err, ErrRolledBack)
}

// back returns to the policy before, or to none.
func (a *Agent) back(ctx context.Context, verb string, r *state.Record) error {
	if r.Previous == nil {
		return a.reset(ctx, verb, r)
	}
	p, err := a.parse(r.Previous)
	if err != nil {
		return err
	}
	_, err = a.converge(ctx, verb, r, p, r.Previous)
	return err
}

// converge brings the kernel to a policy from wherever it is.
func (a *Agent) converge(ctx context.Context, verb string, r *state.Record, p *policy.Policy, target *state.Document) ([]plan.Difference, error) {
	if err := a.room().Check(); err != nil {
		return nil, err
	}
	w, f, err := a.want(ctx, p, r)
	if err != nil {
		return nil, err
	}
	learnt, err := a.learnOffload(r, p, f)
	if err != nil {
		return nil, err
	}
	if learnt {
		if w, f, err = a.want(ctx, p, r); err != nil {
			return nil, err
		}
	}
	have, err := a.read(r)
	if err != nil {
		return nil, err
	}
	d := plan.Diff(have, w)
	if len(d) == 0 && r.Journal == nil {
		return nil, a.same(r, p, target)
	}
	c := &change{Agent: a, record: r}
	if err := c.reach(ctx, verb, p, w, f, have, target); err != nil {
		return nil, err
	}
	return d, c.run(ctx, verb, target)
}

// reach adds all steps that lead to a policy.
func (c *change) reach(ctx context.Context, verb string, p *policy.Policy, w *plan.Want, f plan.Facts, have plan.State, target *state.Document) error {
	if err := c.publish(ctx, p, w, f, have); err != nil {
		return err
	}
	c.addNetPrio(ctx, p, w)
	c.add("read everything back and compare", func() error { return c.prove(c.record, w) })
	c.add("remember what was applied", func() error {
		c.record.Applied = target
		if verb == "apply" {
			c.record.Rollback = nil // told, and over
		}
		c.rememberPolicy(p, []byte(target.Text))
		return nil
	})
	return nil
}

// same notes a policy that asks for nothing new. The same text again is not
// worth a write.
func (a *Agent) same(r *state.Record, p *policy.Policy, target *state.Document) error {
	if r.Applied != nil && r.Applied.Text == target.Text && r.Applied.File == target.File {
		return nil
	}
	r.Applied = target
	a.rememberPolicy(p, []byte(target.Text))
	return a.Scope.Save(r)
}

// prove reads everything back and holds it against what was wanted.
func (a *Agent) prove(r *state.Record, w *plan.Want) error {
	have, err := a.read(r)
	if err != nil {
		return err
	}
	if rest := plan.Diff(have, w); len(rest) > 0 {
		return fmt.Errorf("%w: %s", ErrNotProved, rest[0])
	}
	return nil
}

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

// addLink adds the steps that give a link its queue and its program.
func (c *change) addLink(name string, g **bpf.Generation, w *plan.Want, f plan.LinkFacts, tcx bool) {
	l := w.Links[name]
	known, was := c.record.Links[name]
	if was && known.Index != l.Index {
		was = false // another device of that name
	}
	if !was {
		c.add(fmt.Sprintf("remember what is at the root of %s", name), func() error {
			return c.inScope(func() error { return c.remember(name, l, f) })
		})
	}
	options := tc.Options{TXQueues: f.TXQueues, Adopt: true} // plan.Check has asked before
	c.add(fmt.Sprintf("build the queue of %s: %s", name, l.Queue), func() error {
		return c.inScope(func() error { return c.queue(l, options) })
	})
	c.add(fmt.Sprintf("load link_egress for %s", name), func() error {
		rec := c.record.Links[name]
		rec.Queue, rec.L2, rec.Filter = l.Queue, l.Rules.L2, !tcx
		c.record.Links[name] = rec
		if err := c.save(); err != nil {
			return err
		}
		return (*g).LoadLink(l.Index, w.Rules, l.Rules, w.IDs.Highest(), fresh(c.record.IDs, w.IDs))
	})
}

// remember records what stands at a link's root, so that it can be put back.
func (c *change) remember(name string, l plan.LinkState, f plan.LinkFacts) error {
	clsact, err := tc.HasClsact(l.Index)
	if err != nil {
		return err
	}
	rec := state.LinkRecord{Index: l.Index, Root: f.Root, Clsact: clsact}
	if f.Root.Handle>>16 == plan.RootHandle {
		rec.Root = plan.Qdisc{} // ours from a change that was broken off before it was remembered
	} else if !f.Root.Default {
		saved, err := tc.Save(l.Index)
		if err != nil {
			return err
		}
		if rec.Saved, err = json.Marshal(saved); err != nil {
			return fmt.Errorf("remember root qdisc: %w", err)
		}
	}
	c.record.Links[name] = rec
	return c.save()
}

// queue builds a link's queue op by op; each may be the last that is done.
func (c *change) queue(l plan.LinkState, options tc.Options) error {
	ops, err := tc.Steps(l.Index, l.Queue, options)
	if err != nil {
		return err
	}
	for _, op := range ops {
		if err := c.within(op.String()); err != nil {
			return err
		}
		if err := op.Run(); err != nil {
			return err
		}
	}
	return nil
}

// attach lets a link's program run: by tcx, or as a filter where that is missing.
func (c *change) attach(g *bpf.Generation, index int, f plan.Features) error {
	if f.TCX {
		return g.AttachLink(index)
	}
	return tc.AttachEgress(index, g.Program(index), "weir_link_egress")
}

// removeLink adds the steps that leave a link as it was before Weir.
func (c *change) removeLink(name string) {
	l := c.record.Links[name]
	c.add(fmt.Sprintf("detach link_egress from %s", name), func() error {
		if !l.Filter {
			return c.room().DetachLink(l.Index)
		}
		return ignoreGone(c.inScope(func() error { return tc.DetachEgress(l.Index, l.Clsact) }))
	})
	c.add(fmt.Sprintf("give %s its own queue back", name), func() error {
		err := c.inScope(func() error { return restoreQueue(l) })
		if err != nil {
			return err
		}
		delete(c.record.Links, name)
		return c.save()
	})
}

func restoreQueue(l state.LinkRecord) error {
	if l.Saved == nil {
		return ignoreGone(tc.Remove(l.Index))
	}
	var s tc.Snapshot
	if err := json.Unmarshal(l.Saved, &s); err != nil {
		return fmt.Errorf("read what was at the root: %w", err)
	}
	return ignoreGone(tc.Restore(l.Index, s))
}

// ignoreGone forgives a device that is not there any more.
func ignoreGone(err error) error {
	if errors.Is(err, tc.ErrNoLink) {
		return nil
	}
	return err
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
