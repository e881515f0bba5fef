package bpf

import (
	"fmt"

	"github.com/weir-net/weir/internal/fair"
	"github.com/weir-net/weir/internal/plan"
)

// newBudget is the kernel's view of a budget that nobody uses yet.
func newBudget(of plan.Owner, l plan.Limit) limitBudget {
	b := fair.NewBudget(uint64(l.Max)/8, 0)
	return limitBudget{
		Contract: uint32(of.Contract), Link: uint32(of.Link),
		Limit: b.Limit, TickLength: b.Tick, TickBytes: b.TickBytes, Price: b.Price, Chunk: b.Chunk, Trim: b.Trim,
		Tick: 1, Sent: 2 * (b.Limit / 32),
	}
}

func owner(b limitBudget) plan.Owner {
	return plan.Owner{Contract: plan.ContractID(b.Contract), Link: int(b.Link)}
}

// budgets returns the budgets that are charged.
func (g *Generation) budgets() (map[budgetNumber]limitBudget, error) {
	if charged, err := g.chargesLimits(); err != nil || !charged {
		return nil, err
	}
	all, err := read[uint32, limitBudget](g.tables[limitMapBudgets])
	if err != nil {
		return nil, err
	}
	budgets := map[budgetNumber]limitBudget{}
	for n, b := range all {
		if b.Limit != 0 {
			budgets[budgetNumber(n)] = b
		}
	}
	return budgets, nil
}

// numbers returns the numbers of all budgets. They are read once: whoever changes
// them holds the lock of the scope.
func (g *Generation) numbers() (*numbering, error) {
	if g.numbered != nil {
		return g.numbered, nil
	}
	all, err := g.budgets()
	if err != nil {
		return nil, err
	}
	g.numbered = newNumbering()
	for n, b := range all {
		g.numbered.add(owner(b), n)
	}
	return g.numbered, nil
}

// numberOf returns the number of an owner's budget, none if it has no limit.
func (g *Generation) numberOf(of plan.Owner) (budgetNumber, error) {
	all, err := g.numbers()
	if err != nil {
		return none, err
	}
	return all.of[of], nil
}

// addBudget makes a budget under a free number and returns that, or ErrFull.
func (g *Generation) addBudget(of plan.Owner, l plan.Limit) (budgetNumber, error) {
	all, err := g.numbers()
	if err != nil {
		return none, err
	}
	n := all.free(g.tables[limitMapBudgets].MaxEntries())
	if n == none {
		return none, fmt.Errorf("write limit of contract %d: %w", of.Contract, ErrFull)
	}
	if err := g.tables[limitMapBudgets].Put(uint32(n), newBudget(of, l)); err != nil {
		return none, fmt.Errorf("write limit of contract %d: %w", of.Contract, err)
	}
	all.add(of, n)
	return n, nil
}

// removeBudget frees the number of an owner, if it has one.
func (g *Generation) removeBudget(of plan.Owner) error {
	all, err := g.numbers()
	if err != nil {
		return err
	}
	n, ok := all.of[of]
	if !ok {
		return nil
	}
	if err := g.tables[limitMapBudgets].Put(uint32(n), limitBudget{}); err != nil {
		return fmt.Errorf("remove limit of contract %d: %w", of.Contract, err)
	}
	all.remove(of)
	return nil
}
