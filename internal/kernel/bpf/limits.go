package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/fair"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// ErrNoLimits says that link_egress of a generation does not ask for limits: it was
// loaded where it was not known that the kernel can hold them.
var ErrNoLimits = errors.New("the programs in force hold no limits")

// asksLimits reports whether link_egress asks for limits: where it does not, there
// is no room for any.
func (g *Generation) asksLimits() bool { return g.tables[limitMapBudgets].MaxEntries() >= spareLimits }

// fillLimits gives each limited contract its budget, and link_egress the program
// that charges them.
func (g *Generation) fillLimits(limits map[plan.ContractID]plan.Limit) error {
	if len(limits) == 0 {
		return nil
	}
	for id, l := range limits {
		if err := g.addLimit(id, l); err != nil {
			return err
		}
	}
	return g.loadLimiter()
}

// loadLimiter gives link_egress the program that charges limits. It comes with the
// first one: the kernel looks longer at it than at all others.
func (g *Generation) loadLimiter() error {
	spec, err := copied(parseLimit)
	if err != nil {
		return err
	}
	if err := spec.Variables[limitVarGeneration].Set(g.Number); err != nil {
		return fmt.Errorf("set limit: %w", err)
	}
	var programs limitPrograms
	if err := spec.LoadAndAssign(&programs, g.shared(spec)); err != nil {
		return fmt.Errorf("load limit: %w", err)
	}
	defer programs.Close()
	if err := g.tables[linkEgressMapLimiter].Put(uint32(0), programs.Limit); err != nil {
		return fmt.Errorf("publish limit: %w", err)
	}
	return nil
}

func (g *Generation) addLimit(id plan.ContractID, l plan.Limit) error {
	if err := g.tables[limitMapBudgets].Put(uint32(id), newBudget(l)); err != nil {
		return fmt.Errorf("write limit of contract %d: %w", id, named(err))
	}
	return nil
}

// SetLimit changes what a contract may take, at once. One that had a limit keeps
// its budget, which goes on knowing its flows. Packets are charged to it from when
// the contract's promises say so. It returns ErrNoLimits and ErrFull.
func (g *Generation) SetLimit(id plan.ContractID, l plan.Limit) error {
	if !g.asksLimits() {
		return ErrNoLimits
	}
	charged, err := g.chargesLimits()
	if err == nil && !charged {
		err = g.loadLimiter()
	}
	if err != nil {
		return err
	}
	changed, err := g.relimit(id, l)
	if err != nil || changed {
		return err
	}
	return g.addLimit(id, l)
}

// relimit has the kernel change a limit in place; changed is false where the
// contract has none.
func (g *Generation) relimit(id plan.ContractID, l plan.Limit) (changed bool, err error) {
	spec, err := copied(parseRelimit)
	if err != nil {
		return false, err
	}
	b := newBudget(l)
	err = errors.Join(
		spec.Variables[relimitVarContract].Set(uint32(id)),
		spec.Variables[relimitVarLimit].Set(b.Limit),
		spec.Variables[relimitVarTickLength].Set(b.TickLength),
		spec.Variables[relimitVarTickBytes].Set(b.TickBytes),
	)
	if err != nil {
		return false, fmt.Errorf("set relimit: %w", err)
	}
	var programs relimitPrograms
	if err := spec.LoadAndAssign(&programs, g.shared(spec)); err != nil {
		return false, fmt.Errorf("load relimit: %w", err)
	}
	defer programs.Close()
	const frame = 14 // the kernel runs nothing on less
	answer, err := programs.Relimit.Run(&ebpf.RunOptions{Data: make([]byte, frame), Repeat: 1})
	if err != nil {
		return false, fmt.Errorf("run relimit: %w", err)
	}
	return answer != 0, nil
}

// RemoveLimit takes a contract's limit away. One without is fine.
func (g *Generation) RemoveLimit(id plan.ContractID) error {
	if err := g.tables[limitMapBudgets].Delete(uint32(id)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove limit of contract %d: %w", id, err)
	}
	return nil
}

// HasLimits reports whether any contract has a limit.
func (g *Generation) HasLimits() (bool, error) {
	var id uint32
	err := g.tables[limitMapBudgets].NextKey(nil, &id)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read limits: %w", err)
	}
	return true, nil
}

// newBudget is the kernel's view of a budget that nobody uses yet.
func newBudget(l plan.Limit) limitBudget {
	b := fair.NewBudget(uint64(l.Max)/8, 0)
	return limitBudget{Limit: b.Limit, TickLength: b.Tick, TickBytes: b.TickBytes, Price: b.Price, Chunk: b.Chunk, Trim: b.Trim, Tick: 1, Sent: 2 * (b.Limit / 32)}
}

// limits reads back what the contracts may take: nothing where no program charges
// them.
func (g *Generation) limits() (map[plan.ContractID]plan.Limit, error) {
	budgets, err := g.budgets()
	if err != nil || len(budgets) == 0 {
		return nil, err
	}
	limits := make(map[plan.ContractID]plan.Limit, len(budgets))
	for id, b := range budgets {
		limits[plan.ContractID(id)] = plan.Limit{Max: policy.Rate(b.Limit * 8)}
	}
	return limits, nil
}

// chargesLimits reports whether link_egress has the program that charges limits.
func (g *Generation) chargesLimits() (bool, error) {
	var program uint32
	err := g.tables[linkEgressMapLimiter].Lookup(uint32(0), &program)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read limiter: %w", err)
	}
	return true, nil
}

// budgets returns the budgets that are charged.
func (g *Generation) budgets() (map[uint32]limitBudget, error) {
	if charged, err := g.chargesLimits(); err != nil || !charged {
		return nil, err
	}
	return readOneByOne[uint32, limitBudget](g.tables[limitMapBudgets])
}

// Held returns what became of the packets of each limited contract.
func (g *Generation) Held() (map[plan.ContractID]plan.Held, error) {
	budgets, err := g.budgets()
	if err != nil {
		return nil, err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, fmt.Errorf("read clock: %w", err)
	}
	held := make(map[plan.ContractID]plan.Held, len(budgets))
	for id, b := range budgets {
		// A window ends with a packet: long after it the last one was idle.
		if uint64(now.Nano())-b.Window >= uint64(2*plan.LimitWindow) {
			b.Last = 0
		}
		held[plan.ContractID(id)] = plan.Held{
			Bytes:   b.Total + b.Bytes,
			Dropped: b.Dropped,
			Marked:  b.Marked,
			Last:    policy.Rate(b.Last * 8),
			Most:    policy.Rate(b.Busiest * 8),
		}
	}
	return held, nil
}
