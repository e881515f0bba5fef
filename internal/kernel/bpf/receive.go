package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/plan"
)

// receiveTables is what a generation has for what reaches sockets.
type receiveTables struct {
	program   *ebpf.Program
	contracts *ebpf.Map
}

// Close releases the descriptors.
func (t receiveTables) Close() {
	t.program.Close()
	t.contracts.Close()
}

func (g *Generation) receiveDir() string {
	return filepath.Join(g.room.generationDir(g.Number), "receive")
}

// LoadReceive loads socket_ingress with what the sockets of contracts may receive and
// pins it. It knows all contracts: a tag for one without a limit keeps others' away.
func (g *Generation) LoadReceive(rules plan.Rules, contracts map[string]plan.Contract) error {
	// A first limit of weir set may have been broken off here: the program comes last.
	if err := errors.Join(os.RemoveAll(g.receiveDir()), os.Mkdir(g.receiveDir(), 0o700)); err != nil {
		return fmt.Errorf("create pin directory: %w", err)
	}
	spec, err := copied(parseReceive)
	if err != nil {
		return err
	}
	err = errors.Join(
		spec.Variables[socketIngressVarGeneration].Set(g.Number),
		spec.Variables[socketIngressVarTupleCount].Set(uint32(len(rules.Tuples))),
		spec.Variables[socketIngressVarDscpMatters].Set(dscpMatters(rules.Tuples)),
		spec.Variables[socketIngressVarL2Length].Set(uint32(0)),
		spec.Variables[socketIngressVarLimits].Set(true),
	)
	if err != nil {
		return fmt.Errorf("set socket_ingress: %w", err)
	}
	highest := plan.Unclassified
	for _, c := range contracts {
		highest = max(highest, c.ID)
	}
	spec.Maps[socketIngressMapContracts].MaxEntries = capacityFor(highest)
	o := g.shared(spec)
	o.MapReplacements[socketIngressMapVerdicts] = g.memory.arrivals
	t, err := loadReceive(spec, o)
	if err != nil {
		return err
	}
	for _, c := range contracts {
		if err == nil {
			err = g.putArriving(t.contracts, c, rules.Arriving[c.ID])
		}
	}
	if err == nil {
		err = errors.Join(
			pin(t.contracts, filepath.Join(g.receiveDir(), socketIngressMapContracts)),
			pin(t.program, filepath.Join(g.receiveDir(), programPin)),
		)
	}
	if err != nil {
		t.Close()
		return err
	}
	g.receive = &t
	return nil
}

// loadReceive is loadEgress of what reaches sockets.
func loadReceive(spec *ebpf.CollectionSpec, o *ebpf.CollectionOptions) (receiveTables, error) {
	var t struct {
		Program   *ebpf.Program `ebpf:"socket_ingress"`
		Contracts *ebpf.Map     `ebpf:"contracts"`
	}
	load := func(mptcp bool) error {
		if err := spec.Variables[socketIngressVarKnowsMptcp].Set(mptcp); err != nil {
			return fmt.Errorf("set socket_ingress: %w", err)
		}
		return spec.LoadAndAssign(&t, o)
	}
	if features.HaveProgramHelper(ebpf.CGroupSKB, asm.FnSkcToMptcpSock) != nil || load(true) != nil {
		if err := load(false); err != nil {
			return receiveTables{}, fmt.Errorf("load socket_ingress: %w", err)
		}
	}
	return receiveTables{t.Program, t.Contracts}, nil
}

// openReceive opens what a generation has for what reaches sockets; ErrAbsent if it
// limits nothing of that.
func (g *Generation) openReceive() (*receiveTables, error) {
	if g.receive != nil {
		return g.receive, nil
	}
	maps, err := mapsOf(parseReceive)
	if err != nil {
		return nil, err
	}
	program, err := ebpf.LoadPinnedProgram(filepath.Join(g.receiveDir(), programPin), nil)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrAbsent
	}
	if err != nil {
		return nil, fmt.Errorf("open socket_ingress: %w", err)
	}
	contracts, err := openTable(filepath.Join(g.receiveDir(), socketIngressMapContracts), maps[socketIngressMapContracts])
	if err != nil {
		program.Close()
		return nil, err
	}
	g.receive = &receiveTables{program, contracts}
	return g.receive, nil
}

// putArriving writes what the sockets of a contract may receive. The zero Limit is
// none.
func (g *Generation) putArriving(m *ebpf.Map, c plan.Contract, l plan.Limit) error {
	bytes, packets, err := g.setBudgets(plan.Owner{Contract: c.ID, Link: plan.AtSockets}, l)
	if err != nil {
		return err
	}
	is := socketIngressContract{Priority: plan.Keep, Serial: c.Serial}
	is.Together, is.TogetherPackets = uint16(bytes), uint16(packets)
	switch {
	case packets != none:
		is.Limited |= socketIngressLimitedHAS_MORE
	case bytes != none:
		is.Limited |= socketIngressLimitedHAS_ONE
	}
	if l.Answers {
		is.Limited |= socketIngressLimitedANSWERS
	}
	if err := m.Put(uint32(c.ID), is); err != nil {
		return fmt.Errorf("write what contract %d may receive: %w", c.ID, named(err))
	}
	return nil
}

// SetArriving changes what the sockets of a contract may receive, at once: the zero
// Limit is none. The first one brings socket_ingress, which all contracts are told to,
// and the last one takes it off. It returns ErrNoLimits and ErrFull.
func (g *Generation) SetArriving(c plan.Contract, l plan.Limit, all map[string]plan.Contract) error {
	if l == (plan.Limit{}) {
		return g.removeArriving(c)
	}
	t, err := g.openReceive()
	if errors.Is(err, ErrAbsent) {
		t, err = g.bringReceive(all)
	}
	if err != nil {
		return err
	}
	if err := g.changeBudgets(plan.Owner{Contract: c.ID, Link: plan.AtSockets}, l); err != nil {
		return err
	}
	if err := g.putArriving(t.contracts, c, l); err != nil {
		return err
	}
	if runs, err := g.Receives(); err != nil || runs {
		return err
	}
	return g.AttachReceive()
}

// removeArriving is SetArriving to no limit.
func (g *Generation) removeArriving(c plan.Contract) error {
	of := plan.Owner{Contract: c.ID, Link: plan.AtSockets}
	t, err := g.openReceive()
	if errors.Is(err, ErrAbsent) {
		return g.removeBudgets(of) // of a first limit that was broken off
	}
	if err != nil {
		return err
	}
	if err := g.putArriving(t.contracts, c, plan.Limit{}); err != nil {
		return err
	}
	if err := g.removeBudgets(of); err != nil {
		return err
	}
	left, err := g.arriving()
	if err != nil || len(left) > 0 {
		return err
	}
	return g.room.DetachReceive()
}

// bringReceive loads socket_ingress for a generation in force.
func (g *Generation) bringReceive(all map[string]plan.Contract) (*receiveTables, error) {
	if !g.asksLimits() {
		return nil, ErrNoLimits
	}
	rules, err := g.Rules()
	if err != nil {
		return nil, err
	}
	if err := g.LoadReceive(rules, all); err != nil {
		return nil, err
	}
	return g.receive, nil
}

// AttachReceive puts socket_ingress on the scope's cgroup, in place of an older one in
// one step.
func (g *Generation) AttachReceive() error {
	t, err := g.openReceive()
	if err != nil {
		return err
	}
	return replace(g.room.receivePin(), t.program, func() (link.Link, error) {
		return link.AttachCgroup(link.CgroupOptions{
			Path: g.room.Cgroup, Attach: ebpf.AttachCGroupInetIngress, Program: t.program,
		})
	})
}

// DetachReceive takes socket_ingress off the scope's cgroup. A cgroup without it is
// fine.
func (r Room) DetachReceive() error { return removePinned(r.receivePin()) }

// ReceiveAttached reports whether socket_ingress runs on the scope's cgroup.
func (r Room) ReceiveAttached() bool { return runsOnCgroup(r.receivePin()) }

// Receives reports whether socket_ingress of this generation runs on the scope's
// cgroup; of a generation that has none, whether any does.
func (g *Generation) Receives() (bool, error) {
	runs := programOnCgroup(g.room.receivePin())
	t, err := g.openReceive()
	if errors.Is(err, ErrAbsent) {
		return runs != 0, nil
	}
	if err != nil {
		return false, err
	}
	id, err := programID(t.program)
	return err == nil && id == runs, err
}

// arriving reads back what the sockets of contracts may receive.
func (g *Generation) arriving() (map[plan.ContractID]plan.Limit, error) {
	t, err := g.openReceive()
	if errors.Is(err, ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	limits, err := g.charged()
	if err != nil {
		return nil, err
	}
	all, err := read[uint32, socketIngressContract](t.contracts)
	if err != nil {
		return nil, err
	}
	found := map[plan.ContractID]plan.Limit{}
	for id, c := range all {
		of := plan.Owner{Contract: plan.ContractID(id), Link: plan.AtSockets}
		if l := limits.named(of, c.Together, c.TogetherPackets); l != (plan.Limit{}) {
			l.Answers = c.Limited&socketIngressLimitedANSWERS != 0
			if waits := limits.of[of].limit.waits; waits.device != uint32(g.waiting.At) {
				l.Class = 0 // they go to a device that is gone
			}
			found[of.Contract] = l
		}
	}
	return found, nil
}
