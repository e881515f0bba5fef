package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// boundTables is what a generation has for what TCP sockets hold in memory.
type boundTables struct {
	programs  map[string]*ebpf.Program // by the name of each; those that refuse only where one is to
	bounds    *ebpf.Map
	contracts *ebpf.Map
}

// Close releases the descriptors.
func (t boundTables) Close() {
	for _, p := range t.programs {
		p.Close()
	}
	t.bounds.Close()
	t.contracts.Close()
}

// memoryHooks is where the programs of TCP memory are attached.
var memoryHooks = map[string]ebpf.AttachType{
	tcpMemoryProgTcpMemory:      ebpf.AttachCGroupSockOps,
	tcpMemoryProgTcpAsks:        ebpf.AttachCGroupSetsockopt,
	tcpRefuseProgRefuseConnect4: ebpf.AttachCGroupInet4Connect,
	tcpRefuseProgRefuseConnect6: ebpf.AttachCGroupInet6Connect,
	tcpRefuseProgRefuseSyn:      ebpf.AttachCGroupInetIngress,
}

func (g *Generation) memoryDir() string {
	return filepath.Join(g.room.generationDir(g.Number), "memory")
}

// MemoryOptions says how large socket buffers can be on this host that applications ask
// for, in bytes: twice net.core.wmem_max and net.core.rmem_max.
type MemoryOptions struct{ Send, Receive uint32 }

// LoadMemory loads tcp_memory with what the TCP sockets of contracts may hold and pins it.
// It knows all contracts: a tag for one without a bound keeps others' away.
func (g *Generation) LoadMemory(rules plan.Rules, contracts map[string]plan.Contract, o MemoryOptions) error {
	// A first bound of weir set may have been broken off here: the bounds come last.
	if err := errors.Join(os.RemoveAll(g.memoryDir()), os.Mkdir(g.memoryDir(), 0o700)); err != nil {
		return fmt.Errorf("create pin directory: %w", err)
	}
	spec, err := copied(parseMemory)
	if err != nil {
		return err
	}
	err = errors.Join(
		spec.Variables[tcpMemoryVarGeneration].Set(g.Number),
		spec.Variables[tcpMemoryVarAskedSndbuf].Set(o.Send),
		spec.Variables[tcpMemoryVarAskedRcvbuf].Set(o.Receive),
	)
	if err != nil {
		return fmt.Errorf("set tcp_memory: %w", err)
	}
	highest := plan.Unclassified
	for _, c := range contracts {
		highest = max(highest, c.ID)
	}
	spec.Maps[tcpMemoryMapBounds].MaxEntries = capacityFor(highest)
	spec.Maps[tcpMemoryMapContracts].MaxEntries = capacityFor(highest)
	all, err := ebpf.NewCollectionWithOptions(spec, *g.shared(spec))
	if err != nil {
		return fmt.Errorf("load tcp_memory: %w", err)
	}
	defer all.Close()
	bounds, known := all.Maps[tcpMemoryMapBounds], all.Maps[tcpMemoryMapContracts]
	pools, err := g.pools()
	if err != nil {
		return err
	}
	for _, c := range contracts {
		if err == nil {
			err = g.putBound(bounds, known, c, rules.Memory[c.ID], pools[c].made)
		}
	}
	if err != nil {
		return err
	}
	if refuses(rules.Memory) {
		if err := g.loadRefuse(bounds, known); err != nil {
			return err
		}
	}
	for name, p := range all.Programs {
		err = errors.Join(err, pin(p, filepath.Join(g.memoryDir(), name)))
	}
	return errors.Join(err,
		pin(known, filepath.Join(g.memoryDir(), tcpMemoryMapContracts)), // for adopt
		pin(bounds, filepath.Join(g.memoryDir(), tcpMemoryMapBounds)))
}

// refuses reports whether any bound refuses connections that it has no room for.
func refuses(bounds map[plan.ContractID]policy.TCPMemory) bool {
	for _, m := range bounds {
		if m.WhenFull == policy.WhenFullRefuse {
			return true
		}
	}
	return false
}

// loadRefuse loads what refuses connections, by the tables of tcp_memory, and pins it.
func (g *Generation) loadRefuse(bounds, contracts *ebpf.Map) error {
	spec, err := copied(parseRefuse)
	if err != nil {
		return err
	}
	spec.Maps[tcpRefuseMapBounds].MaxEntries = bounds.MaxEntries()
	spec.Maps[tcpRefuseMapContracts].MaxEntries = contracts.MaxEntries()
	o := g.shared(spec)
	o.MapReplacements[tcpRefuseMapBounds], o.MapReplacements[tcpRefuseMapContracts] = bounds, contracts
	all, err := ebpf.NewCollectionWithOptions(spec, *o)
	if err != nil {
		return fmt.Errorf("load tcp_refuse: %w", err)
	}
	defer all.Close()
	for name, p := range all.Programs {
		err = errors.Join(err, pin(p, filepath.Join(g.memoryDir(), name)))
	}
	return err
}

// putBound writes what the sockets of a contract may hold, none for the zero value, in
// the pool that they share, which was made at a time; 0: it is made now, first.
func (g *Generation) putBound(bounds, contracts *ebpf.Map, c plan.Contract, m policy.TCPMemory, made uint32) (err error) {
	if m.Max != 0 && made == 0 {
		made, err = g.makePool(c)
	}
	is := tcpMemoryBound{Soft: uint64(m.Soft), Max: uint64(m.Max), Made: made}
	if m.WhenFull == policy.WhenFullRefuse {
		is.Refuse = 1
	}
	if err == nil {
		err = errors.Join(
			bounds.Put(uint32(c.ID), is),
			contracts.Put(uint32(c.ID), tcpMemoryContract{Priority: plan.Keep, Serial: c.Serial}),
		)
	}
	if err != nil {
		return fmt.Errorf("write what contract %d may hold: %w", c.ID, named(err))
	}
	return nil
}

// AttachMemory puts the programs of TCP memory on the scope's cgroup, each in place of an
// older one in one step, and takes those off that this generation has not.
func (g *Generation) AttachMemory() error {
	t, err := g.openBounds()
	if err != nil {
		return err
	}
	for name, hook := range memoryHooks {
		p, wanted := t.programs[name]
		if !wanted {
			err = errors.Join(err, removePinned(g.room.memoryPin(name)))
			continue
		}
		err = errors.Join(err, replace(g.room.memoryPin(name), p, func() (link.Link, error) {
			return link.AttachCgroup(link.CgroupOptions{Path: g.room.Cgroup, Attach: hook, Program: p})
		}))
	}
	return err
}

// DetachMemory takes the programs of TCP memory off the scope's cgroup. A cgroup without
// them is fine.
func (r Room) DetachMemory() (err error) {
	for name := range memoryHooks {
		err = errors.Join(err, removePinned(r.memoryPin(name)))
	}
	return err
}

// MemoryAttached reports whether any program of TCP memory runs on the scope's cgroup.
func (r Room) MemoryAttached() bool {
	for name := range memoryHooks {
		if runsOnCgroup(r.memoryPin(name)) {
			return true
		}
	}
	return false
}

// HoldsMemory reports whether the programs of TCP memory of this generation run on the
// scope's cgroup; of a generation that has none, whether any does.
func (g *Generation) HoldsMemory() (bool, error) {
	t, err := g.openBounds()
	if errors.Is(err, ErrAbsent) {
		return g.room.MemoryAttached(), nil
	}
	if err != nil {
		return false, err
	}
	for name := range memoryHooks {
		var id uint32
		if p := t.programs[name]; p != nil {
			if id, err = programID(p); err != nil {
				return false, err
			}
		}
		if id != programOnCgroup(g.room.memoryPin(name)) {
			return false, nil
		}
	}
	return true, nil
}

// openBounds opens what a generation has for what TCP sockets hold; ErrAbsent if it
// bounds nothing of that.
func (g *Generation) openBounds() (*boundTables, error) {
	if g.bounded != nil {
		return g.bounded, nil
	}
	maps, err := mapsOf(parseMemory)
	if err != nil {
		return nil, err
	}
	bounds, err := openTable(filepath.Join(g.memoryDir(), tcpMemoryMapBounds), maps[tcpMemoryMapBounds])
	if err != nil {
		return nil, err
	}
	contracts, err := openTable(filepath.Join(g.memoryDir(), tcpMemoryMapContracts), maps[tcpMemoryMapContracts])
	if err != nil {
		bounds.Close()
		return nil, err
	}
	t := &boundTables{map[string]*ebpf.Program{}, bounds, contracts}
	for name := range memoryHooks {
		p, err := ebpf.LoadPinnedProgram(filepath.Join(g.memoryDir(), name), nil)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Close()
			return nil, fmt.Errorf("open %s: %w", name, err)
		}
		t.programs[name] = p
	}
	g.bounded = t
	return t, nil
}

// bounds reads back what the TCP sockets of contracts may hold.
func (g *Generation) bounds() (map[plan.ContractID]policy.TCPMemory, error) {
	t, err := g.openBounds()
	if errors.Is(err, ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := read[uint32, tcpMemoryBound](t.bounds)
	if err != nil {
		return nil, err
	}
	found := map[plan.ContractID]policy.TCPMemory{}
	for id, b := range all {
		if b.Max == 0 {
			continue
		}
		m := policy.TCPMemory{Soft: policy.Size(b.Soft), Max: policy.Size(b.Max)}
		if b.Refuse != 0 {
			m.WhenFull = policy.WhenFullRefuse
		}
		found[plan.ContractID(id)] = m
	}
	return found, nil
}
