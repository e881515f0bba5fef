package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"

	"github.com/weir-net/weir/internal/fair"
	"github.com/weir-net/weir/internal/plan"
)

// newBudget is the kernel's view of a budget that nobody uses yet.
func newBudget(of plan.Owner, a amount) limitBudget {
	b := fair.NewBudget(a.rate, 0)
	if a.burst != 0 {
		b.Collect(uint64(a.burst))
	}
	b.Spread(cpus())
	if of.Member != 0 {
		b = b.NewBloc(uint64(a.weight))
	}
	return limitBudget{
		Contract: uint16(of.Contract), Link: uint32(of.Link), Packets: uint32(flag(of.Packets)), Toward: uint32(of.Toward),
		Within: uint32(a.within), Member: uint32(of.Member),
		Device: a.waits.device, Class: a.waits.class, Unit: b.Unit,
		Limit: b.Limit, TickLength: b.Tick, TickBytes: b.TickBytes,
		Burst: uint64(a.burst), Depth: b.Depth, StreamDepth: b.Streams, Slice: b.Slice, Price: b.Price, Chunk: b.Chunk, Trim: b.Trim,
		Tick: 1, Sent: b.Sent,
	}
}

func owner(b limitBudget) plan.Owner {
	return plan.Owner{
		Contract: plan.ContractID(b.Contract), Link: int(int32(b.Link)), Packets: b.Packets != 0, Toward: uint16(b.Toward),
		Member: plan.ContractID(b.Member),
	}
}

// makeBudgets makes room for so many limits, beside those that come later. Where
// the table is too small, a larger one takes its place, with all that is known of
// the limits: the programs of older generations keep theirs.
func (g *Generation) makeBudgets(limits int) error {
	all, err := read[uint32, limitBudget](g.memory.budgets)
	if err != nil {
		return err
	}
	there := 0 // those that this generation wants and those that it does not
	for _, b := range all {
		if b.Limit != 0 {
			there++
		}
	}
	need := uint32(1 + limits + max(spareLimits, there))
	if g.memory.budgets.MaxEntries() >= need {
		return nil
	}
	maps, err := mapsOf(parseLimit)
	if err != nil {
		return err
	}
	table := maps[limitMapBudgets].Copy()
	for table.MaxEntries = spareLimits + 1; table.MaxEntries < min(need, maxBudgets); {
		table.MaxEntries *= 2
	}
	// What was given ahead is lost to who had it: two milliseconds and a half of a share at most.
	credits := maps[limitMapCredits].Copy()
	credits.MaxEntries = table.MaxEntries
	if err := g.enlarge(&g.memory.credits, credits, func(*ebpf.Map) error { return nil }); err != nil {
		return err
	}
	return g.enlarge(&g.memory.budgets, table, func(made *ebpf.Map) error { return fill(made, all) })
}

// enlarge replaces a pinned table by another, once that has been filled.
func (g *Generation) enlarge(table **ebpf.Map, spec *ebpf.MapSpec, fill func(made *ebpf.Map) error) error {
	path := filepath.Join(g.room.Dir, spec.Name)
	larger := path + "_larger"
	if err := os.Remove(larger); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what was broken off: %w", err)
	}
	made, err := makeTable(larger, spec)
	if err != nil {
		return err
	}
	err = fill(made)
	if err == nil {
		err = os.Rename(larger, path)
	}
	if err != nil {
		made.Close()
		return errors.Join(fmt.Errorf("make room for limits: %w", err), os.Remove(larger))
	}
	(*table).Close()
	*table = made
	return nil
}

// budgets returns the budgets that are charged.
func (g *Generation) budgets() (map[budgetNumber]limitBudget, error) {
	if charged, err := g.chargesLimits(); err != nil || !charged {
		return nil, err
	}
	all, err := read[uint32, limitBudget](g.memory.budgets)
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
	all, err := read[uint32, limitBudget](g.memory.budgets)
	if err != nil {
		return nil, err
	}
	g.numbered = newNumbering()
	for n, b := range all {
		number := budgetNumber(n)
		g.numbered.serials[number] = b.Serial
		if b.Limit != 0 {
			g.numbered.set(owner(b), assigned{number, amountIn(b)})
		}
	}
	return g.numbered, nil
}

// charged are the numbers of the budgets that are charged: of none where link_egress
// has no program for it.
func (g *Generation) charged() (*numbering, error) {
	if charged, err := g.chargesLimits(); err != nil || !charged {
		return newNumbering(), err
	}
	return g.numbers()
}

// setBudget gives one amount of a limit its budget and returns its number, or ErrFull.
// One that is there goes on knowing its flows, and changes with SettleLimits. 0 is no
// limit.
func (g *Generation) setBudget(of plan.Owner, l amount) (budgetNumber, error) {
	if l.rate == 0 {
		return none, nil
	}
	if err := g.ensureLimiter(); err != nil {
		return none, err
	}
	all, err := g.numbers()
	if err != nil {
		return none, err
	}
	n := all.of[of].number
	if n == none {
		if n, err = g.addBudget(all, of, l); err != nil {
			return none, err
		}
	}
	if g.wanted == nil {
		g.wanted = map[plan.Owner]amount{}
	}
	g.wanted[of] = l
	return n, nil
}

func (g *Generation) addBudget(all *numbering, of plan.Owner, l amount) (budgetNumber, error) {
	n := all.free(g.memory.budgets.MaxEntries())
	if n == none {
		return none, fmt.Errorf("make a limit: %w", ErrFull)
	}
	b := newBudget(of, l)
	b.Serial = all.serials[n]
	if err := g.putBudget(n, b); err != nil {
		return none, err
	}
	all.set(of, assigned{n, l})
	return n, nil
}

// removeBudget frees the number of an owner, if it has one. What still has a stake in
// it knows by the serial.
func (g *Generation) removeBudget(of plan.Owner) error {
	all, err := g.numbers()
	if err != nil {
		return err
	}
	is, known := all.of[of]
	if !known {
		return nil
	}
	all.serials[is.number]++
	all.remove(of)
	return errors.Join(g.putBudget(is.number, limitBudget{Serial: all.serials[is.number]}), g.forfeit(is.number))
}

func (g *Generation) putBudget(n budgetNumber, b limitBudget) error {
	if err := g.memory.budgets.Put(uint32(n), b); err != nil {
		return fmt.Errorf("write limit %d: %w", n, err)
	}
	return nil
}

// SettleLimits makes the limits those that the generation was given, when no packet
// is charged by an older one any more: until then what that charges goes by the
// limits that it knew. What has changed begins anew: whose limit it is may have
// changed with it.
func (g *Generation) SettleLimits() error {
	all, err := g.numbers()
	if err != nil {
		return err
	}
	for of, is := range maps.Clone(all.of) {
		l, wanted := g.wanted[of]
		if wanted && l == is.limit {
			continue
		}
		err = errors.Join(err, g.removeBudget(of))
		if wanted {
			b := newBudget(of, l)
			b.Serial = all.serials[is.number]
			all.set(of, assigned{is.number, l})
			err = errors.Join(err, g.putBudget(is.number, b))
		}
	}
	return errors.Join(err, g.settleDepartures())
}
