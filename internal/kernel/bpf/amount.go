package bpf

import (
	"github.com/weir-net/weir/internal/fair"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// An amount is what one budget lets pass, in its bytes a second. A budget of packets
// counts each of them as a full segment: so the sums that hold for bytes hold for
// packets, from 64 Kbit to 100 Gbit of full segments. The zero amount is no limit.
type amount struct {
	rate  uint64
	burst policy.Size // what its buckets collect, if that was told

	// Of a bloc, as how many flows it counts in the limit with a number.
	weight plan.Weight
	within budgetNumber

	waits line // where acknowledgements wait of what passes
}

// A line is where acknowledgements wait that stand for what a limit lets pass: a device, and a class
// there as skb->priority names it. The zero line is none.
type line struct{ device, class uint32 }

// amountOf is what a limit lets pass in the unit of an owner's budget.
func amountOf(l plan.Limit, of plan.Owner) amount {
	if of.Packets {
		return amount{rate: uint64(l.PPS) * fair.Segment}
	}
	return amount{rate: uint64(l.Max / 8), burst: l.Burst, waits: line{class: l.Class}}
}

// amountOf is amountOf where acknowledgements wait on the device that the generation knows of.
func (g *Generation) amountOf(l plan.Limit, of plan.Owner) amount {
	a := amountOf(l, of)
	if a.waits.class != 0 {
		a.waits.device = uint32(g.waiting.At)
	}
	return a
}

// amountIn is what a budget of the kernel's lets pass.
func amountIn(b limitBudget) amount {
	a := amount{rate: b.Limit, burst: policy.Size(b.Burst), waits: line{b.Device, b.Class}}
	if b.Within != 0 {
		a.weight, a.within = plan.Weight(b.Unit/fair.One), budgetNumber(b.Within)
	}
	return a
}

// join is a limit with this amount in the unit of an owner's budget.
func (a amount) join(l plan.Limit, of plan.Owner) plan.Limit {
	if of.Packets {
		l.PPS = policy.PacketRate(counted(a.rate))
	} else {
		l.Max, l.Burst, l.Class = policy.Rate(a.rate*8), a.burst, a.waits.class
	}
	return l
}

// counted turns what a budget of packets has counted into packets.
func counted(bytes uint64) uint64 { return bytes / fair.Segment }

// both are an owner's budgets: of bytes and of packets.
func both(of plan.Owner) [2]plan.Owner {
	bytes, packets := of, of
	bytes.Packets, packets.Packets = false, true
	return [...]plan.Owner{bytes, packets}
}

// setAmounts has a limit held: by budgets, whose numbers it returns, or by departure times.
func (g *Generation) setAmounts(of plan.Owner, l plan.Limit) (bytes, packets budgetNumber, err error) {
	if l.Departs {
		return none, none, g.setDeparture(of, l)
	}
	return g.setBudgets(of, l)
}

// setBudgets is setBudget of both amounts of a limit.
func (g *Generation) setBudgets(of plan.Owner, l plan.Limit) (bytes, packets budgetNumber, err error) {
	var numbers [2]budgetNumber
	for i, of := range both(of) {
		if numbers[i], err = g.setBudget(of, g.amountOf(l, of)); err != nil {
			return none, none, err
		}
	}
	return numbers[0], numbers[1], nil
}

// changeBudgets is setBudgets with effect at once. What the limit does not have is left
// to whoever takes it away.
func (g *Generation) changeBudgets(of plan.Owner, l plan.Limit) error {
	for _, of := range both(of) {
		if err := g.changeBudget(of, g.amountOf(l, of)); err != nil {
			return err
		}
	}
	return nil
}

// removeBudgets is removeBudget of both.
func (g *Generation) removeBudgets(of plan.Owner) error {
	for _, of := range both(of) {
		if err := g.removeBudget(of); err != nil {
			return err
		}
	}
	return nil
}

func flag(set bool) uint8 {
	if set {
		return 1
	}
	return 0
}
