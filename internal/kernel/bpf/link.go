package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/plan"
)

// linkTables is what a generation has for one link.
type linkTables struct {
	program             *ebpf.Program
	contracts, counters *ebpf.Map
	ingress             *ebpf.Program // nil where what arrives is not limited
}

// Close releases the descriptors.
func (t linkTables) Close() {
	t.program.Close()
	t.contracts.Close()
	t.counters.Close()
	t.ingress.Close()
}

// pin pins them in a directory of their own.
func (t linkTables) pin(dir string) error {
	var err error
	if t.ingress != nil {
		err = pin(t.ingress, filepath.Join(dir, ingressPin))
	}
	return errors.Join(
		err,
		pin(t.program, filepath.Join(dir, programPin)),
		pin(t.contracts, filepath.Join(dir, linkEgressMapContracts)),
		pin(t.counters, filepath.Join(dir, linkEgressMapCounters)),
	)
}

// The names under which a link's programs are pinned.
const (
	programPin = "program"
	ingressPin = "ingress"
)

func (g *Generation) linkDir(index int) string {
	return filepath.Join(g.room.generationDir(g.Number), strconv.Itoa(index))
}

// LoadLink loads link_egress for one link with its promises and pins it. The counters
// of an older generation go on, but for those of fresh contracts, which begin at zero.
func (g *Generation) LoadLink(index int, rules plan.Rules, l plan.LinkRules, fresh []plan.ContractID) error {
	if err := os.MkdirAll(g.linkDir(index), 0o700); err != nil {
		return fmt.Errorf("create pin directory: %w", err)
	}
	own, err := g.ownBudgets(plan.OwnEgress, index, l.Egress)
	if err != nil {
		return err
	}
	number := linkEgressLinkNumberFIRST_LINK + linkEgressLinkNumber(len(g.links))
	spec, err := g.egressOf(number, rules, l, own)
	if err != nil {
		return err
	}
	o := g.shared(spec)
	spec.Maps[linkEgressMapContracts].MaxEntries = g.capacity
	spec.Maps[linkEgressMapCounters].MaxEntries = g.capacity
	older := g.olderCounters(index, spec.Maps[linkEgressMapCounters])
	if older != nil {
		defer older.Close()
		if older.MaxEntries() == g.capacity {
			o.MapReplacements[linkEgressMapCounters] = older
		}
	}
	t, err := loadEgress(spec, o)
	if err != nil {
		return err
	}
	err = g.fillPromises(index, t.contracts, l.Contracts)
	if err == nil {
		if err = g.tables[limitMapLinks].Put(uint32(number), t.contracts); err != nil {
			err = fmt.Errorf("tell limit of link %d: %w", index, err)
		}
	}
	if err == nil {
		t.ingress, err = g.loadIngress(number, index, rules, l, t.contracts)
	}
	if err == nil {
		err = g.fillBlocs(rules.Blocs, index)
	}
	if err == nil {
		err = carryOn(older, t.counters, fresh)
	}
	if err == nil {
		err = t.pin(g.linkDir(index))
	}
	if err != nil {
		t.Close()
		return err
	}
	g.links[index] = t
	return nil
}

// ownBudgets gives a link's own limit in one direction its budgets, as its programs take
// their numbers: 0 is none.
func (g *Generation) ownBudgets(direction plan.ContractID, index int, l plan.Limit) (uint32, error) {
	bytes, packets, err := g.setBudgets(plan.Owner{Contract: direction, Link: index}, l)
	return uint32(bytes) | uint32(packets)<<16, err
}

// egressOf is link_egress for a link of the generation.
func (g *Generation) egressOf(number linkEgressLinkNumber, rules plan.Rules, l plan.LinkRules, own uint32) (*ebpf.CollectionSpec, error) {
	spec, err := copied(parseEgress)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		spec.Variables[linkEgressVarGeneration].Set(g.Number),
		spec.Variables[linkEgressVarThisLink].Set(number),
		spec.Variables[linkEgressVarTupleCount].Set(uint32(len(rules.Tuples))),
		spec.Variables[linkEgressVarDscpMatters].Set(dscpMatters(rules.Tuples)),
		spec.Variables[linkEgressVarL2Length].Set(uint32(l.L2)),
		spec.Variables[linkEgressVarBucketMask].Set(l.BucketMask),
		spec.Variables[linkEgressVarNoQueue].Set(l.NoQueue),
		spec.Variables[linkEgressVarLimits].Set(g.asksLimits() || g.later || departs(rules, l)),
		spec.Variables[linkEgressVarOwnBudgets].Set(own),
		spec.Variables[linkEgressVarComeBack].Set(uint32(g.waiting.Back)),
	)
	if err != nil {
		return nil, fmt.Errorf("set link_egress: %w", err)
	}
	return spec, nil
}

// loadEgress loads link_egress with all that the kernel knows. The helper that
// leads to an MPTCP connection is there since 5.19, but a kernel that was built
// without MPTCP refuses a program that calls it, whatever a probe says.
func loadEgress(spec *ebpf.CollectionSpec, o *ebpf.CollectionOptions) (linkTables, error) {
	var t struct {
		Program   *ebpf.Program `ebpf:"link_egress"`
		Contracts *ebpf.Map     `ebpf:"contracts"`
		Counters  *ebpf.Map     `ebpf:"counters"`
	}
	load := func(mptcp bool) error {
		if err := spec.Variables[linkEgressVarKnowsMptcp].Set(mptcp); err != nil {
			return fmt.Errorf("set link_egress: %w", err)
		}
		return spec.LoadAndAssign(&t, o)
	}
	if features.HaveProgramHelper(ebpf.SchedCLS, asm.FnSkcToMptcpSock) != nil || load(true) != nil {
		if err := load(false); err != nil {
			return linkTables{}, fmt.Errorf("load link_egress: %w", err)
		}
	}
	return linkTables{program: t.Program, contracts: t.Contracts, counters: t.Counters}, nil
}

// capacityFor leaves room for the contracts of weir set and weir run, which come
// between two applies, and grows by doubling so that counters mostly go on.
func capacityFor(highest plan.ContractID) uint32 {
	const room = 512
	capacity := uint32(1024)
	for capacity < uint32(highest)+room && capacity < 1<<16 {
		capacity *= 2
	}
	return capacity
}

// openLink opens what a generation has for one link.
func (g *Generation) openLink(index int) (t linkTables, err error) {
	if t, ok := g.links[index]; ok {
		return t, nil
	}
	maps, err := mapsOf(parseEgress)
	if err != nil {
		return t, err
	}
	if t.program, err = ebpf.LoadPinnedProgram(filepath.Join(g.linkDir(index), programPin), nil); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrAbsent
		}
		return t, fmt.Errorf("open program of link %d: %w", index, err)
	}
	contracts, err1 := openTable(filepath.Join(g.linkDir(index), linkEgressMapContracts), maps[linkEgressMapContracts])
	counters, err2 := openTable(filepath.Join(g.linkDir(index), linkEgressMapCounters), maps[linkEgressMapCounters])
	t.contracts, t.counters = contracts, counters
	t.ingress, err = ebpf.LoadPinnedProgram(filepath.Join(g.linkDir(index), ingressPin), nil)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err := errors.Join(err1, err2, err); err != nil {
		t.Close()
		return linkTables{}, err
	}
	g.links[index] = t
	return t, nil
}

// Program is the descriptor of link_egress for a link, for where tcx is missing
// and it is attached as a filter. It lives as long as the generation is open.
func (g *Generation) Program(index int) int { return g.links[index].program.FD() }

// ProgramID is the kernel's id of the generation's link_egress for a link.
func (g *Generation) ProgramID(index int) (uint32, error) {
	t, err := g.openLink(index)
	if err != nil {
		return 0, err
	}
	return programID(t.program)
}

func programID(p *ebpf.Program) (uint32, error) {
	info, err := p.Info()
	if err != nil {
		return 0, fmt.Errorf("read program %s: %w", p, err)
	}
	id, _ := info.ID()
	return uint32(id), nil
}

// AttachLink puts link_egress on a link by tcx, last among the programs there,
// in place of an older one in one step. It acts in the calling thread's network
// namespace.
func (g *Generation) AttachLink(index int) error {
	return attachTCX(g.room.linkPin(index), index, g.links[index].program, ebpf.AttachTCXEgress, link.Tail())
}

func attachTCX(pin string, index int, p *ebpf.Program, hook ebpf.AttachType, place link.Anchor) error {
	return replace(pin, p, func() (link.Link, error) {
		return link.AttachTCX(link.TCXOptions{Interface: index, Program: p, Attach: hook, Anchor: place})
	})
}
