package agent

import (
	"errors"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// addWaiting adds the steps that make a place where acknowledgements wait: before the programs
// that send them there, and addUnwaiting after those have gone.
func (c *change) addWaiting(d *draft) {
	want := d.want.Waiting
	if !want.Any() {
		return
	}
	c.add("make "+tc.WaitingDevice+" and "+tc.BackDevice+" for answers that wait", func() error {
		return c.inScope(c.makeWaiting)
	})
	c.addWaitingQueue("build the queue of "+tc.WaitingDevice, want.Queue.Widened(d.have.Waiting.Queue))
	c.add("attach back to "+tc.BackDevice, func() error {
		return c.inScope(func() error { return c.attachBack(d.facts.Features.TCX) })
	})
}

// addWaitingQueue adds the step that builds the queue in which answers wait.
func (c *change) addWaitingQueue(text string, q plan.Queue) {
	find := func() (at int, err error) {
		at, _, err = tc.FindWaiting()
		return at, err
	}
	c.addQueue(text, find, q, tc.Options{Adopt: true}) // the device is ours, whatever others put there
}

// makeWaiting makes the devices. The record knows of them before they are there.
func (c *change) makeWaiting() error {
	if err := tc.CheckWaiting(); err != nil {
		return err
	}
	if !c.record.Waiting {
		c.record.Waiting = true
		if err := c.save(); err != nil {
			return err
		}
	}
	if err := c.breakable("add " + tc.WaitingDevice); err != nil {
		return err
	}
	return tc.MakeWaiting()
}

// attachBack has what has waited go on, sets the devices up, and tells the generation of them.
func (c *change) attachBack(tcx bool) error {
	at, back, err := tc.FindWaiting()
	if err != nil {
		return err
	}
	if tcx {
		err = c.generation.AttachBack(back)
	} else {
		err = c.filterBack(back)
	}
	if err != nil {
		return err
	}
	c.generation.WaitAt(bpf.Waiting{At: at, Back: back})
	return tc.OpenWaiting()
}

// filterBack attaches back as a filter.
func (c *change) filterBack(index int) error {
	p, err := c.generation.LoadBack()
	if err != nil {
		return err
	}
	defer p.Close()
	return tc.Attach(index, tc.Ingress, p.FD(), "weir_back")
}

// addUnwaiting adds the steps that take away what of the place nobody needs any more, now that no
// program sends anything there.
func (c *change) addUnwaiting(d *draft) {
	want := d.want.Waiting
	switch {
	case want.Any() && !want.Queue.Widened(d.have.Waiting.Queue).Equal(want.Queue):
		c.addWaitingQueue("take the classes from "+tc.WaitingDevice+" that nobody has any more", want.Queue)
	case !want.Any():
		c.endWaiting()
	}
}

// endWaiting adds the step that removes the place, where there is one.
func (c *change) endWaiting() {
	if !c.record.Waiting {
		return
	}
	c.add("remove "+tc.WaitingDevice+" and "+tc.BackDevice, func() error {
		err := c.inScope(func() error {
			return errors.Join(c.room().DetachBack(), tc.RemoveWaiting())
		})
		if err != nil {
			return err
		}
		c.record.Waiting = false
		return c.save()
	})
}

// open opens the generation that counts, and tells it where answers wait.
func (a *Agent) open(r *state.Record) (*bpf.Generation, error) {
	g, err := a.room().Open(r.Generation)
	if err != nil || !r.Waiting {
		return g, err
	}
	err = a.inScope(func() error {
		at, back, err := tc.FindWaiting()
		g.WaitAt(bpf.Waiting{At: at, Back: back})
		return err
	})
	if err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// readWaiting reads what there is of it.
func (a *Agent) readWaiting() (w plan.Waiting, err error) {
	err = a.inScope(func() error {
		if w, err = tc.ReadWaiting(); err != nil || !w.Any() {
			return err
		}
		_, back, err := tc.FindWaiting()
		if err != nil || back == 0 { // it is said already
			return err
		}
		runs := a.room().BackID(back) != 0
		if !runs {
			p, err := tc.ReadProgram(back, tc.Ingress)
			if err != nil {
				return err
			}
			runs = p.ID != 0
		}
		if !runs {
			w.Drift = append(w.Drift, "nothing sends on what comes back by "+tc.BackDevice)
		}
		return nil
	})
	return w, err
}
