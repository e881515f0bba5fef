package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/weir-net/weir/internal/plan"
)

// The types of the tables are the kernel's view of plan.Rules, filled in and
// read back by the same pair of functions, so that a state that was written is
// the state that is read.

// Fill writes the rules into the tables, except for the births, which Begin has
// filled.
func (g *Generation) Fill(rules plan.Rules) error {
	exes := make(map[linkEgressExe]uint32, len(rules.Exes))
	for e, id := range rules.Exes {
		exes[exeKey(e)] = uint32(id)
	}
	flows := make(map[linkEgressFlowKey]uint32, len(rules.Flows))
	for k, id := range rules.Flows {
		flows[flowKey(k)] = uint32(id)
	}
	tuples := map[uint32]linkEgressTuple{}
	for i, t := range rules.Tuples {
		tuples[uint32(i)] = tuple(t)
	}
	return errors.Join(
		fill(g.tables[linkEgressMapCgroups], widen(rules.Cgroups)),
		fill(g.tables[linkEgressMapCgroups1], widen(rules.Cgroups1)),
		fill(g.tables[linkEgressMapUsers], widen(rules.Users)),
		fill(g.tables[linkEgressMapExes], exes),
		fill(g.tables[linkEgressMapFlows], flows),
		fill(g.tables[linkEgressMapTuples], tuples),
		g.fillLimits(rules.Limits),
		g.fillToward(rules.Toward),
		g.fillBlocs(rules.Blocs, 0),
	)
}

// Bury takes out the cgroups that a look found, that Fill wrote and that a later
// look does not find: they may have died before they were written, so that the
// births saw nothing to take out. Their ids are not given out again.
func (g *Generation) Bury(found, later plan.Rules) error {
	return errors.Join(
		remove(g.tables[linkEgressMapCgroups], found.Cgroups, later.Cgroups),
		remove(g.tables[linkEgressMapCgroups1], found.Cgroups1, later.Cgroups1),
	)
}

// remove deletes the keys that are not in rest. Those that are not there are fine.
func remove[K comparable, V any](m *ebpf.Map, keys, rest map[K]V) error {
	for k := range keys {
		if _, stays := rest[k]; stays {
			continue
		}
		if err := m.Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("remove %v from table %s: %w", k, m, err)
		}
	}
	return nil
}

// Rules reads back what the tables hold. The name of the v1 controller is not
// among it: the kernel knows it by number only.
func (g *Generation) Rules() (plan.Rules, error) {
	cgroups, err1 := read[uint64, uint32](g.tables[linkEgressMapCgroups])
	cgroups1, err2 := read[uint64, uint32](g.tables[linkEgressMapCgroups1])
	users, err3 := read[uint32, uint32](g.tables[linkEgressMapUsers])
	exes, err4 := read[linkEgressExe, uint32](g.tables[linkEgressMapExes])
	flows, err5 := read[linkEgressFlowKey, uint32](g.tables[linkEgressMapFlows])
	tuples, err6 := g.tuples()
	births, err7 := g.readBirths()
	limits, err8 := g.limits()
	arriving, err9 := g.arriving()
	toward, err10 := g.toward()
	blocs, err11 := g.blocs()
	memory, err12 := g.bounds()
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11, err12); err != nil {
		return plan.Rules{}, err
	}
	rules := plan.Rules{
		Cgroups: narrow(cgroups), Cgroups1: narrow(cgroups1), Users: narrow(users),
		Exes:   make(map[plan.ExeID]plan.ContractID, len(exes)),
		Flows:  make(map[plan.FlowKey]plan.ContractID, len(flows)),
		Tuples: tuples, Births: births, Limits: limits, Arriving: arriving, Toward: toward, Blocs: blocs, Memory: memory,
	}
	for k, id := range exes {
		rules.Exes[exeID(k)] = plan.ContractID(id)
	}
	for k, id := range flows {
		rules.Flows[planFlowKey(k)] = plan.ContractID(id)
	}
	return rules, nil
}

func widen[K comparable](m map[K]plan.ContractID) map[K]uint32 {
	out := make(map[K]uint32, len(m))
	for k, v := range m {
		out[k] = uint32(v)
	}
	return out
}

func narrow[K comparable](m map[K]uint32) map[K]plan.ContractID {
	out := make(map[K]plan.ContractID, len(m))
	for k, v := range m {
		out[k] = plan.ContractID(v)
	}
	return out
}

func exeKey(e plan.ExeID) linkEgressExe { return linkEgressExe{Inode: e.Inode, Device: e.Device} }

func exeID(k linkEgressExe) plan.ExeID { return plan.ExeID{Inode: k.Inode, Device: k.Device} }
