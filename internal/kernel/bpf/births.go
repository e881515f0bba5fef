package bpf

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/plan"
)

// watchBirths loads the programs that follow births and deaths and lets them go.
func (g *Generation) watchBirths(o Options) error {
	spec, err := copied(parseBirths)
	if err != nil {
		return err
	}
	if err := spec.Variables[birthsVarHierarchy1].Set(int32(o.Hierarchy1)); err != nil {
		return fmt.Errorf("set hierarchy: %w", err)
	}
	var programs birthsPrograms
	if err := spec.LoadAndAssign(&programs, g.shared(spec)); err != nil {
		return fmt.Errorf("load births: %w", err)
	}
	defer programs.Close()
	// Deaths first: what is born is then seen to die, however soon.
	for _, tp := range []link.RawTracepointOptions{
		{Name: "sched_process_exit", Program: programs.TaskExit},
		{Name: "sched_process_fork", Program: programs.TaskFork},
		{Name: "cgroup_rmdir", Program: programs.CgroupDeath},
		{Name: "cgroup_mkdir", Program: programs.CgroupBirth},
	} {
		l, err := link.AttachRawTracepoint(tp)
		if err != nil {
			return fmt.Errorf("attach to tracepoint %s: %w", tp.Name, err)
		}
		g.births = append(g.births, l)
		if err := pin(l, filepath.Join(g.room.generationDir(g.Number), tp.Name)); err != nil {
			return err
		}
	}
	return nil
}

// Losses counts what the births of a generation could not file because a table
// was full.
type Losses struct {
	Tags    uint64 // processes that did not inherit their parent's tag
	Cgroups uint64 // cgroups that wait for the next apply though a pattern matches
}

// Losses returns what was lost since the generation began.
func (g *Generation) Losses() (Losses, error) {
	var perCPU []birthsLosses
	if err := g.tables[birthsMapLosses].Lookup(uint32(0), &perCPU); err != nil {
		return Losses{}, fmt.Errorf("read losses: %w", err)
	}
	var sum Losses
	for _, l := range perCPU {
		sum.Tags += l.Tags
		sum.Cgroups += l.Cgroups
	}
	return sum, nil
}

func (g *Generation) fillBirths(b plan.Births) error {
	paths, names := map[birthsBirthPath]uint32{}, map[birthsBirthName]uint32{}
	prefixes := map[birthsBirthPrefix]birthsBirth{}
	for p, id := range b.Paths {
		paths[birthPath(p)] = uint32(id)
	}
	for n, id := range b.Names {
		names[birthName(n)] = uint32(id)
	}
	for p, id := range b.Prefixes {
		prefixes[birthPrefix(p)] = birthsBirth{Contract: uint32(id), Length: uint32(len(p))}
	}
	return errors.Join(
		fill(g.tables[birthsMapBirthPaths], paths),
		fill(g.tables[birthsMapBirthNames], names),
		fill(g.tables[birthsMapBirthPrefixes], prefixes),
	)
}

// readBirths reads the patterns back.
func (g *Generation) readBirths() (plan.Births, error) {
	b := plan.Births{
		Paths: map[string]plan.ContractID{}, Prefixes: map[string]plan.ContractID{}, Names: map[string]plan.ContractID{},
	}
	paths, err1 := read[birthsBirthPath, uint32](g.tables[birthsMapBirthPaths])
	names, err2 := read[birthsBirthName, uint32](g.tables[birthsMapBirthNames])
	// Batches over an LPM trie give no cursor that can be trusted.
	prefixes, err3 := readOneByOne[birthsBirthPrefix, birthsBirth](g.tables[birthsMapBirthPrefixes])
	for k, id := range paths {
		b.Paths[text(k.Path[:])] = plan.ContractID(id)
	}
	for k, id := range names {
		b.Names[text(k.Name[:])] = plan.ContractID(id)
	}
	for k, v := range prefixes {
		b.Prefixes[text(k.Path[:])] = plan.ContractID(v.Contract)
	}
	return b, errors.Join(err1, err2, err3)
}

func birthPath(path string) (k birthsBirthPath) {
	copyText(k.Path[:], path)
	return k
}

func birthName(name string) (k birthsBirthName) {
	copyText(k.Name[:], name)
	return k
}

func birthPrefix(prefix string) (k birthsBirthPrefix) {
	k.Bits = uint32(len(prefix)) * 8
	copyText(k.Path[:], prefix)
	return k
}

func copyText(to []int8, s string) {
	for i := range min(len(s), len(to)) {
		to[i] = int8(s[i])
	}
}

// text returns the characters before the first NUL.
func text(b []int8) string {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		if c == 0 {
			break
		}
		out = append(out, byte(c))
	}
	return string(out)
}
