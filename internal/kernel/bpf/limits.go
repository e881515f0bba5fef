package bpf

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/fair"
	"github.com/weir-net/weir/internal/plan"
)

// ErrNoLimits says that link_egress of a generation does not ask for limits: it was
// loaded where it was not known that the kernel can hold them.
var ErrNoLimits = errors.New("the programs in force hold no limits")

// asksLimits reports whether link_egress asks for limits: where it does not, there
// is no room for any.
func (g *Generation) asksLimits() bool { return g.memory.budgets.MaxEntries() > 1 }

// fillLimits gives each limited contract its budget, or its departure.
func (g *Generation) fillLimits(limits map[plan.ContractID]plan.Limit) error {
	for _, id := range slices.Sorted(maps.Keys(limits)) {
		if _, _, err := g.setAmounts(plan.Owner{Contract: id}, limits[id]); err != nil {
			return err
		}
	}
	return nil
}

// ensureLimiter gives link_egress the program that charges limits. It comes with the
// first one: the kernel looks longer at it than at all others.
func (g *Generation) ensureLimiter() error {
	charged, err := g.chargesLimits()
	if err != nil || charged {
		return err
	}
	return g.loadLimiter()
}

// Where link_egress finds the programs of limits, as enum limiter_slot has it.
const (
	slotLimit uint32 = iota
	slotDepart
)

// loadLimiter gives link_egress the program that charges limits.
func (g *Generation) loadLimiter() error {
	spec, err := copied(parseLimit)
	if err != nil {
		return err
	}
	var programs limitPrograms
	if err := spec.LoadAndAssign(&programs, g.shared(spec)); err != nil {
		return fmt.Errorf("load limit: %w", err)
	}
	defer programs.Close()
	if err := g.tables[linkEgressMapLimiter].Put(slotLimit, programs.Limit); err != nil {
		return fmt.Errorf("publish limit: %w", err)
	}
	return nil
}

// chargesLimits reports whether link_egress has the program that charges limits.
func (g *Generation) chargesLimits() (bool, error) { return g.hasLimiter(slotLimit) }

// hasLimiter reports whether link_egress has one of the programs of limits.
func (g *Generation) hasLimiter(slot uint32) (bool, error) {
	var program uint32
	err := g.tables[linkEgressMapLimiter].Lookup(slot, &program)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read limiter: %w", err)
	}
	return true, nil
}

// SetLimit changes what a contract may take of all links together, at once. One
// that had a limit keeps its budget, which goes on knowing its flows, or its departure. Packets are
// charged to it from when the contract's promises say so. It returns ErrNoLimits
// and ErrFull.
func (g *Generation) SetLimit(id plan.ContractID, l plan.Limit) error {
	if l.Departs {
		return g.changeDeparture(plan.Owner{Contract: id}, l)
	}
	if !g.asksLimits() {
		return ErrNoLimits
	}
	return g.changeBudgets(plan.Owner{Contract: id}, l)
}

// changeBudget is setBudget with effect at once.
func (g *Generation) changeBudget(of plan.Owner, l amount) error {
	if l.rate == 0 {
		return nil
	}
	n, err := g.setBudget(of, l)
	if err != nil {
		return err
	}
	if all, err := g.numbers(); err != nil || all.of[of].limit == l {
		return err
	}
	if err := g.relimit(n, l); err != nil {
		return err
	}
	g.numbered.set(of, assigned{n, l})
	return nil
}

// relimit has the kernel change a limit in place.
func (g *Generation) relimit(n budgetNumber, l amount) error {
	spec, err := copied(parseRelimit)
	if err != nil {
		return err
	}
	b := newBudget(plan.Owner{}, l)
	err = errors.Join(
		spec.Variables[relimitVarNumber].Set(uint32(n)),
		spec.Variables[relimitVarLimit].Set(b.Limit),
		spec.Variables[relimitVarTickLength].Set(b.TickLength),
		spec.Variables[relimitVarTickBytes].Set(b.TickBytes),
		spec.Variables[relimitVarBurst].Set(b.Burst),
		spec.Variables[relimitVarDepth].Set(b.Depth),
		spec.Variables[relimitVarStreamDepth].Set(b.StreamDepth),
		spec.Variables[relimitVarSliceLength].Set(b.Slice),
		spec.Variables[relimitVarSent].Set(b.Sent),
	)
	if err != nil {
		return fmt.Errorf("set relimit: %w", err)
	}
	answer, err := g.runOnce(spec, relimitProgRelimit)
	if err != nil {
		return err
	}
	if answer == 0 {
		return fmt.Errorf("change limit %d: it is gone", n)
	}
	return g.forfeit(n)
}

// RemoveLimit takes a contract's limit of all links together away. One without is
// fine.
func (g *Generation) RemoveLimit(id plan.ContractID) error {
	of := plan.Owner{Contract: id}
	return errors.Join(g.removeBudgets(of), g.removeDeparture(of))
}

// HasLimits reports whether anything that is sent has a limit that is paced.
func (g *Generation) HasLimits() (bool, error) {
	all, err := g.charged()
	if err != nil {
		return false, err
	}
	for of := range all.of {
		if of.Link != plan.AtSockets {
			return true, nil
		}
	}
	return false, nil
}

// limits reads back what the contracts may take of all links together: nothing
// where no program charges them.
func (g *Generation) limits() (map[plan.ContractID]plan.Limit, error) {
	budgets, err1 := g.budgets()
	departures, err2 := g.departures()
	if err := errors.Join(err1, err2); err != nil || len(budgets)+len(departures) == 0 {
		return nil, err
	}
	limits := make(map[plan.ContractID]plan.Limit, len(budgets)+len(departures))
	for _, b := range budgets {
		if of := owner(b); of.Link == 0 && of.Toward == 0 && b.Member == 0 {
			limits[of.Contract] = amountIn(b).join(limits[of.Contract], of)
		}
	}
	for of, d := range departures {
		if of.Link == 0 {
			limits[of.Contract] = d.limit()
		}
	}
	return limits, nil
}

// Held returns what became of the packets below each limit, and in each bloc.
func (g *Generation) Held() (map[plan.Owner]plan.Held, error) {
	all, err1 := g.budgets()
	departures, err2 := g.departures()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, fmt.Errorf("read clock: %w", err)
	}
	held := make(map[plan.Owner]plan.Held, len(all)+len(departures))
	for _, b := range all {
		// A window ends with a packet: long after it the last one was idle.
		if uint64(now.Nano())-b.Window >= uint64(2*plan.LimitWindow) {
			b.Last = 0
		}
		streams := b.StreamsPaid / fair.Fraction // until when its bucket is paid
		h := plan.Held{
			Dropped: b.Dropped,
			Marked:  b.Marked,
			Streams: streams != 0 && streams+uint64(plan.LimitWindow) >= b.Window,
		}
		of := owner(b)
		if of.Packets {
			h.Passed, h.Last, h.Most = counted(b.Total+b.Bytes), counted(b.Last), counted(b.Busiest)
		} else {
			h.Passed, h.Last, h.Most = b.Total+b.Bytes, b.Last*8, b.Busiest*8
		}
		held[of] = h
	}
	addBlocs(held)
	for of, d := range departures {
		held[of] = d.held(now)
	}
	return held, nil
}
