package bpf

import "github.com/weir-net/weir/internal/plan"

// A budgetNumber names a budget in the tables of contracts, where it has 16 bits.
type budgetNumber uint16

// none is the number of no budget.
const none budgetNumber = 0

// maxBudgets is how many numbers there are, none included.
const maxBudgets = 1 << 16

// An assigned is what one budget lets pass, with its number.
type assigned struct {
	number budgetNumber
	limit  amount
}

// A numbering is which number each limit has, and which serial each number, that a
// limit has or had.
type numbering struct {
	of      map[plan.Owner]assigned
	owners  map[budgetNumber]plan.Owner
	serials map[budgetNumber]uint16
	lowest  uint32 // no lower number is free
}

func newNumbering() *numbering {
	return &numbering{
		of: map[plan.Owner]assigned{}, owners: map[budgetNumber]plan.Owner{}, serials: map[budgetNumber]uint16{}, lowest: 1,
	}
}

func (n *numbering) set(o plan.Owner, as assigned) { n.of[o], n.owners[as.number] = as, o }

func (n *numbering) remove(o plan.Owner) {
	was := n.of[o].number
	delete(n.of, o)
	delete(n.owners, was)
	n.lowest = min(n.lowest, uint32(was))
}

// free returns the lowest free number below a bound, none if there is none.
func (n *numbering) free(below uint32) budgetNumber {
	for ; n.lowest < below; n.lowest++ {
		if _, taken := n.owners[budgetNumber(n.lowest)]; !taken {
			return budgetNumber(n.lowest)
		}
	}
	return none
}

// limitOf is the limit that the two budgets of an owner hold.
func (n *numbering) limitOf(of plan.Owner) (l plan.Limit) {
	for _, of := range both(of) {
		l = n.of[of].limit.join(l, of)
	}
	return l
}

// named is the limit that the two budgets with these numbers hold, as far as they are the
// owner's.
func (n *numbering) named(of plan.Owner, bytes, packets uint16) (l plan.Limit) {
	numbers := [...]budgetNumber{budgetNumber(bytes), budgetNumber(packets)}
	for i, of := range both(of) {
		if is, known := n.of[of]; known && is.number == numbers[i] {
			l = is.limit.join(l, of)
		}
	}
	return l
}
