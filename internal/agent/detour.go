package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// addDetour adds the steps that send what arrives by a link over an ifb: the device, its
// queue, and last the filter, which would send packets into nothing before. They come
// before the programs change over, and addUndetour after it: what goes from one rung to the
// other is held by both for a moment, and never by neither.
func (c *change) addDetour(name string, want plan.LinkState) {
	if !want.Detour.Any() {
		return
	}
	device := tc.DetourName(want.Index)
	c.add(fmt.Sprintf("make %s for what arrives by %s", device, name), func() error {
		return c.inScope(func() error { return c.makeDetour(name) })
	})
	c.addQueue(fmt.Sprintf("build the queue of %s: htb at %s", device, want.Detour.Queue.Rate),
		func() (int, error) { return tc.FindDetour(want.Index) }, want.Detour.Queue, tc.Options{Adopt: true}) // the device is ours, whatever others put there
	c.add(fmt.Sprintf("send what arrives by %s over %s", name, device), func() error {
		return c.inScope(func() error { return tc.OpenDetour(want.Index) })
	})
}

// makeDetour makes the device beside a link. The record knows of it before it is there.
func (c *change) makeDetour(name string) error {
	l := c.record.Links[name]
	if err := tc.CheckDetour(l.Index); err != nil {
		return err
	}
	if !l.Detour {
		l.Detour = true
		c.record.Links[name] = l
		if err := c.save(); err != nil {
			return err
		}
	}
	if err := c.breakable("add " + tc.DetourName(l.Index)); err != nil {
		return err
	}
	_, err := tc.MakeDetour(l.Index, name)
	return err
}

// addUndetour adds the step that ends a detour where none is wanted.
func (c *change) addUndetour(name string, want plan.LinkState) {
	if !c.record.Links[name].Detour || want.Detour.Any() {
		return
	}
	c.add(fmt.Sprintf("end the way of what arrives by %s over %s", name, tc.DetourName(want.Index)), func() error {
		l := c.record.Links[name]
		if err := c.endDetour(l); err != nil {
			return err
		}
		l.Detour = false
		c.record.Links[name] = l
		return c.save()
	})
}

// endDetour takes the filter off a link, and then the device away; what waits there is
// dropped. The link may be gone.
func (c *change) endDetour(l state.LinkRecord) error {
	if !l.Detour {
		return nil
	}
	return c.inScope(func() error {
		if err := ignoreGone(tc.ClearRedirect(l.Index, l.Clsact)); err != nil {
			return err
		}
		if err := c.breakable("delete " + tc.DetourName(l.Index)); err != nil {
			return err
		}
		return tc.RemoveDetour(l.Index)
	})
}

// lookAtDetour reads the counters of the queue of a detour.
func (a *Agent) lookAtDetour(link int, all map[plan.Owner]glimpse) {
	var classes []tc.ClassCounters
	begin := time.Now()
	err := a.inScope(func() error {
		beside, err := tc.FindDetour(link)
		if err == nil && beside == 0 {
			err = errors.New("no device")
		}
		if err != nil {
			return err
		}
		begin = time.Now()
		classes, err = tc.Counters(beside)
		return err
	})
	if err != nil || len(classes) != 1 {
		return
	}
	seen := tc.Police{Passed: plan.Traffic{Packets: classes[0].Packets, Bytes: classes[0].Bytes}, Dropped: classes[0].Drops}
	all[plan.Owner{Contract: plan.OwnIngress, Link: link}] = glimpse{begin, time.Now(), seen}
}
