package bpf

import "github.com/weir-net/weir/internal/plan"

// A budgetNumber names a budget in the tables of contracts, where it has 16 bits.
type budgetNumber uint16

// none is the number of no budget.
const none budgetNumber = 0

// maxBudgets is how many numbers there are, none included.
const maxBudgets = 1 << 16

// A numbering is which number each limit's budget has.
type numbering struct {
	of     map[plan.Owner]budgetNumber
	owners map[budgetNumber]plan.Owner
	lowest uint32 // no lower number is free
}

func newNumbering() *numbering {
	return &numbering{of: map[plan.Owner]budgetNumber{}, owners: map[budgetNumber]plan.Owner{}, lowest: 1}
}

func (n *numbering) add(o plan.Owner, as budgetNumber) { n.of[o], n.owners[as] = as, o }

func (n *numbering) remove(o plan.Owner) {
	was := n.of[o]
	delete(n.of, o)
	delete(n.owners, was)
	n.lowest = min(n.lowest, uint32(was))
}

// free returns the lowest free number below a limit, none if there is none.
func (n *numbering) free(below uint32) budgetNumber {
	for ; n.lowest < below; n.lowest++ {
		if _, taken := n.owners[budgetNumber(n.lowest)]; !taken {
			return budgetNumber(n.lowest)
		}
	}
	return none
}
