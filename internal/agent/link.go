package agent

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// addLink adds the steps that give a link its queue and its program.
func (c *change) addLink(name string, d *draft) {
	w, f := d.want, d.facts.Links[name]
	l, tcx := w.Links[name], d.facts.Features.TCX
	c.addRemember(name, f)
	c.addLinkQueue(fmt.Sprintf("build the queue of %s: %s", name, l.Queue), l.Index, l.Queue.Widened(d.have.Links[name].Queue), f)
	c.add(fmt.Sprintf("load link_egress for %s", name), func() error {
		rec := c.record.Links[name]
		rec.Queue, rec.L2, rec.Filter = l.Queue, l.Rules.L2, !tcx
		c.record.Links[name] = rec
		if err := c.save(); err != nil {
			return err
		}
		return c.generation.LoadLink(l.Index, w.Rules, l.Rules, fresh(c.record.IDs, w.IDs))
	})
}

// addLinkQueue is addQueue of a link.
func (c *change) addLinkQueue(text string, index int, q plan.Queue, f plan.LinkFacts) {
	options := tc.Options{TXQueues: f.TXQueues, Adopt: true} // plan.Check has asked before
	c.addQueue(text, func() (int, error) { return index, nil }, q, options)
}

// addQueue adds the step that builds the queue of a device, which find finds; 0 is one that is not
// there yet.
func (c *change) addQueue(text string, find func() (device int, err error), q plan.Queue, options tc.Options) {
	c.add(text, func() error {
		return c.inScope(func() error {
			device, err := find()
			if err != nil {
				return err
			}
			return c.queue(device, q, options)
		})
	})
	c.steps[len(c.steps)-1].parts = func() (parts []string, err error) {
		err = c.inScope(func() error {
			device, err := find()
			if err != nil || device == 0 {
				return err
			}
			ops, err := tc.Steps(device, q, options)
			for _, op := range ops {
				parts = append(parts, op.String())
			}
			return err
		})
		return parts, err
	}
}

// addNarrow adds the step that takes away the shares of a link that nobody has any
// more, or what keeps times of departure, now that no program sends packets there.
func (c *change) addNarrow(name string, d *draft) {
	l := d.want.Links[name]
	if !l.Queue.Widened(d.have.Links[name].Queue).Equal(l.Queue) {
		text := "take the shares from " + name + " that nobody has any more"
		if d.have.Links[name].Queue.Leaf == plan.LeafFQ {
			text = "keep no times of departure on " + name + " any more"
		}
		c.addLinkQueue(text, l.Index, l.Queue, d.facts.Links[name])
	}
}

// addRemember adds the step that records what stands at a link's root, unless
// that is known or the step is there already.
func (c *change) addRemember(name string, f plan.LinkFacts) {
	if known, ok := c.record.Links[name]; ok && known.Index == f.Index {
		return
	}
	text := fmt.Sprintf("remember what is at the root of %s", name)
	for _, s := range c.steps {
		if s.text == text {
			return
		}
	}
	c.add(text, func() error { return c.inScope(func() error { return c.remember(name, f) }) })
}

// remember records what stands at a link's root, so that it can be put back.
func (c *change) remember(name string, f plan.LinkFacts) error {
	if gone, ok := c.record.Links[name]; ok { // another device had the name
		if err := errors.Join(c.room().DetachLink(gone.Index), c.endDetour(gone)); err != nil {
			return err
		}
	}
	clsact, err := tc.HasClsact(f.Index)
	if err != nil {
		return err
	}
	rec := state.LinkRecord{Index: f.Index, Root: f.Root, Clsact: clsact}
	if f.Root.Handle>>16 == plan.RootHandle {
		rec.Root = plan.Qdisc{} // ours, and what was before it is not known any more
	} else if !f.Root.Default {
		saved, err := tc.Save(f.Index)
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
func (c *change) queue(link int, q plan.Queue, options tc.Options) error {
	ops, err := tc.Steps(link, q, options)
	if err != nil {
		return err
	}
	for _, op := range ops {
		if err := c.breakable(op.String()); err != nil {
			return err
		}
		if err := op.Run(); err != nil {
			return err
		}
	}
	return nil
}

// attach lets a link's program run: by tcx, or as a filter where that is missing.
func attach(g *bpf.Generation, index int, tcx bool) error {
	if tcx {
		return g.AttachLink(index)
	}
	return tc.Attach(index, tc.Egress, g.Program(index), "weir_link_egress")
}

// addIngress adds the step that holds what arrives by a link to the link's own limit,
// or ends that.
func (c *change) addIngress(name string, l plan.LinkState, tcx bool) {
	if was, known := c.record.Links[name]; known && !l.Ingress {
		c.add(fmt.Sprintf("see that nothing holds what arrives by %s", name), func() error { return c.detachIngress(was) })
	}
	if !l.Ingress {
		return
	}
	c.add(fmt.Sprintf("attach link_ingress to %s", name), func() error {
		return c.inScope(func() error {
			if tcx {
				return c.generation.AttachIngress(l.Index)
			}
			return tc.Attach(l.Index, tc.Ingress, c.generation.IngressProgram(l.Index), "weir_link_ingress")
		})
	})
}

// detachIngress takes link_ingress off a link. What else it brought stays.
func (a *Agent) detachIngress(l state.LinkRecord) error {
	if !l.Filter {
		return a.room().DetachIngress(l.Index)
	}
	return ignoreGone(a.inScope(func() error { return tc.Detach(l.Index, tc.Ingress, true) }))
}

// removeLink adds the steps that leave a link as it was before Weir.
func (c *change) removeLink(name string) {
	l := c.record.Links[name]
	c.add(fmt.Sprintf("detach link_egress from %s", name), func() error {
		if err := errors.Join(c.endPolice(l), c.endDetour(l)); err != nil {
			return err
		}
		if !l.Filter {
			return c.room().DetachLink(l.Index)
		}
		if err := c.detachIngress(l); err != nil {
			return err
		}
		return ignoreGone(c.inScope(func() error { return tc.Detach(l.Index, tc.Egress, l.Clsact) }))
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
