package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// addPolice adds the step that gives a link the filters which hold its own limits. It
// comes before the programs change over, and addUnpolice after it: what goes from one
// rung to the other is held by both for a moment, and never by neither.
func (c *change) addPolice(name string, want plan.LinkState) {
	if want.Policed.Any() {
		c.add(fmt.Sprintf("police %s", name), func() error { return c.police(c.record.Links[name], want) })
	}
}

// police holds a link to what it may carry by filters. What a device hands up lacks the
// header of its link layer.
func (a *Agent) police(l state.LinkRecord, want plan.LinkState) error {
	return a.inScope(func() (err error) {
		for _, limit := range want.Policed.Egress {
			err = errors.Join(err, tc.SetPolice(l.Index, tc.Egress, limit, 0))
		}
		for _, limit := range want.Policed.Ingress {
			err = errors.Join(err, tc.SetPolice(l.Index, tc.Ingress, limit, int(l.L2)))
		}
		return err
	})
}

// addUnpolice adds the step that takes the filters off a link which hold it to nothing
// that is wanted.
func (c *change) addUnpolice(name string, have, want plan.LinkState) {
	egress := len(have.Policed.Egress) > 0 && len(want.Policed.Egress) == 0
	ingress := len(have.Policed.Ingress) > 0 && len(want.Policed.Ingress) == 0
	if !egress && !ingress {
		return
	}
	c.add(fmt.Sprintf("end what polices %s", name), func() error {
		return c.inScope(func() (err error) {
			l := c.record.Links[name]
			if egress {
				err = tc.ClearPolice(l.Index, tc.Egress, l.Clsact)
			}
			if ingress {
				err = errors.Join(err, tc.ClearPolice(l.Index, tc.Ingress, l.Clsact))
			}
			return err
		})
	})
}

// endPolice takes the filters off a link, and clsact with them if that was ours.
func (a *Agent) endPolice(l state.LinkRecord) error {
	return a.inScope(func() error {
		return ignoreGone(errors.Join(tc.ClearPolice(l.Index, tc.Egress, l.Clsact), tc.ClearPolice(l.Index, tc.Ingress, l.Clsact)))
	})
}

// readPoliced reads back what filters hold a link to.
func readPoliced(link int) (p plan.Policed, err error) {
	all, err := tc.Polices(link)
	for _, one := range all[tc.Egress] {
		p.Egress = append(p.Egress, one.Limit)
	}
	for _, one := range all[tc.Ingress] {
		p.Ingress = append(p.Ingress, one.Limit)
	}
	return p, err
}

// filtered looks at what the filters and detours of links let through: for plan.ShareWindow, unless
// nothing comes.
func (a *Agent) filtered(w *plan.Want) map[plan.Owner]plan.Filtered {
	first := a.glance(w)
	last := first
	for begin := time.Now(); len(first) > 0 && time.Since(begin) < plan.ShareWindow; {
		time.Sleep(shareLook)
		if last = a.glance(w); idle(first, last) {
			break
		}
	}
	all := map[plan.Owner]plan.Filtered{}
	for owner, is := range last {
		f := plan.Filtered{Passed: is.Passed, Dropped: is.Dropped}
		if was, known := first[owner]; known && was.Passed.Bytes < is.Passed.Bytes {
			f.Over(is.begin.Sub(was.end), is.end.Sub(was.begin), is.Passed.Bytes-was.Passed.Bytes)
		}
		all[owner] = f
	}
	return all
}

// A glimpse is what one filter or detour had let through between two times.
type glimpse struct {
	begin, end time.Time
	tc.Police
}

// glance reads the counters of the filters and detours of all links. Of what can not be
// read the differences tell.
func (a *Agent) glance(w *plan.Want) map[plan.Owner]glimpse {
	all := map[plan.Owner]glimpse{}
	for _, link := range w.Links {
		if link.Detour.Any() {
			a.lookAtDetour(link.Index, all)
		}
		if !link.Policed.Any() {
			continue
		}
		var found map[tc.Hook][]tc.Police
		begin := time.Now()
		err := a.inScope(func() (err error) {
			found, err = tc.Polices(link.Index)
			return err
		})
		for hook, id := range map[tc.Hook]plan.ContractID{tc.Egress: plan.OwnEgress, tc.Ingress: plan.OwnIngress} {
			if err == nil && len(found[hook]) > 0 {
				all[plan.Owner{Contract: id, Link: link.Index}] = glimpse{begin, time.Now(), found[hook][0]}
			}
		}
	}
	return all
}

// idle reports that nothing passed any filter between two looks.
func idle(first, last map[plan.Owner]glimpse) bool {
	for owner, is := range last {
		if is.Passed != first[owner].Passed {
			return false
		}
	}
	return true
}
