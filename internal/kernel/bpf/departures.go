package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

func departing(of plan.Owner) departDeparting {
	return departDeparting{Contract: uint32(of.Contract), Link: uint32(of.Link)}
}

// departs reports whether any limit that a link may meet is held by departure times.
func departs(rules plan.Rules, l plan.LinkRules) bool {
	for _, together := range rules.Limits {
		if together.Departs {
			return true
		}
	}
	for _, p := range l.Contracts {
		if p.Here.Departs {
			return true
		}
	}
	return false
}

// ensureDepart gives link_egress the program that gives departure times. It comes with the
// first limit that is held so.
func (g *Generation) ensureDepart() error {
	there, err := g.hasLimiter(slotDepart)
	if err != nil || there {
		return err
	}
	spec, err := copied(parseDepart)
	if err != nil {
		return err
	}
	var programs departPrograms
	if err := spec.LoadAndAssign(&programs, g.shared(spec)); err != nil {
		return fmt.Errorf("load depart: %w", err)
	}
	defer programs.Close()
	if err := g.tables[linkEgressMapLimiter].Put(slotDepart, programs.Depart); err != nil {
		return fmt.Errorf("publish depart: %w", err)
	}
	return nil
}

// setDeparture has a limit held by departure times. One that is there goes on, and changes
// with SettleLimits. It returns ErrFull.
func (g *Generation) setDeparture(of plan.Owner, l plan.Limit) error {
	if err := g.ensureDepart(); err != nil {
		return err
	}
	fresh := departDeparture{Rate: uint64(l.Max / 8)}
	err := g.memory.departures.Update(departing(of), fresh, ebpf.UpdateNoExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("make a limit by departure times: %w", named(err))
	}
	if g.departing == nil {
		g.departing = map[departDeparting]uint64{}
	}
	g.departing[departing(of)] = fresh.Rate
	return nil
}

// changeDeparture is setDeparture with effect at once. It returns ErrNoLimits, where the
// programs in force give no times, and ErrFull.
func (g *Generation) changeDeparture(of plan.Owner, l plan.Limit) error {
	there, err := g.hasLimiter(slotDepart)
	if err == nil && !there {
		err = ErrNoLimits
	}
	if err != nil {
		return err
	}
	if err := g.setDeparture(of, l); err != nil {
		return err
	}
	var is departDeparture
	if err := g.memory.departures.Lookup(departing(of), &is); err != nil {
		return fmt.Errorf("read the departures of contract %d: %w", of.Contract, err)
	}
	if rate := g.departing[departing(of)]; is.Rate != rate {
		return g.retime(of, rate)
	}
	return nil
}

// retime has the kernel change a limit in place.
func (g *Generation) retime(of plan.Owner, rate uint64) error {
	spec, err := copied(parseRetime)
	if err != nil {
		return err
	}
	err = errors.Join(
		spec.Variables[retimeVarContract].Set(uint32(of.Contract)),
		spec.Variables[retimeVarLink].Set(uint32(of.Link)),
		spec.Variables[retimeVarRate].Set(rate),
	)
	if err != nil {
		return fmt.Errorf("set retime: %w", err)
	}
	answer, err := g.runOnce(spec, retimeProgRetime)
	if err != nil {
		return err
	}
	if answer == 0 {
		return fmt.Errorf("change the departures of contract %d: they are gone", of.Contract)
	}
	return nil
}

// removeDeparture takes a limit away that is held by departure times, if it is there.
func (g *Generation) removeDeparture(of plan.Owner) error {
	delete(g.departing, departing(of))
	if err := g.memory.departures.Delete(departing(of)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove the departures of contract %d: %w", of.Contract, err)
	}
	return nil
}

// settleDepartures makes the limits those that the generation was given, as SettleLimits
// does. Where a rate changes, what waits already keeps its time and all else begins anew; a
// packet that leaves in that moment may be forgotten.
func (g *Generation) settleDepartures() error {
	all, err := read[departDeparting, departDeparture](g.memory.departures)
	if err != nil {
		return err
	}
	for of, is := range all {
		switch rate, wanted := g.departing[of]; {
		case !wanted:
			err = errors.Join(err, g.removeDeparture(plan.Owner{Contract: plan.ContractID(of.Contract), Link: int(of.Link)}))
		case rate != is.Rate:
			if e := g.memory.departures.Put(of, departDeparture{Rate: rate, Next: is.Next, Ahead: is.Ahead}); e != nil {
				err = errors.Join(err, fmt.Errorf("change the departures of contract %d: %w", of.Contract, e))
			}
		}
	}
	return err
}

// departures returns the limits that are held by departure times: none where link_egress
// has no program that gives any.
func (g *Generation) departures() (map[plan.Owner]departDeparture, error) {
	if there, err := g.hasLimiter(slotDepart); err != nil || !there {
		return nil, err
	}
	all, err := read[departDeparting, departDeparture](g.memory.departures)
	if err != nil {
		return nil, err
	}
	departures := make(map[plan.Owner]departDeparture, len(all))
	for of, is := range all {
		departures[plan.Owner{Contract: plan.ContractID(of.Contract), Link: int(of.Link)}] = is
	}
	return departures, nil
}

// limit is the limit that a departure holds; none where there is none.
func (d departDeparture) limit() plan.Limit {
	return plan.Limit{Max: policy.Rate(d.Rate * 8), Departs: d.Rate != 0}
}

// held returns what became of the packets below it. Its windows are of the times at which
// packets may leave, which are ahead of the clock.
func (d departDeparture) held(now unix.Timespec) plan.Held {
	if now.Nano()-int64(d.Window) >= int64(2*plan.LimitWindow) {
		d.Last = 0 // as a window ends with a packet, the last one was idle
	}
	return plan.Held{Passed: d.Passed, Dropped: d.Dropped, Marked: d.Marked, Last: d.Last * 8, Most: d.Busiest * 8}
}
