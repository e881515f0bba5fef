package bpf

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/plan"
)

// watchBirths loads the programs that follow births and deaths and lets them go.
func (g *Generation) watchBirths(b plan.Births, o Options) error {
	if err := g.fillBirths(b); err != nil {
		return err
	}
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
	for name, p := range map[string]*ebpf.Program{
		"sched_process_fork": programs.TaskFork,
		"sched_process_exit": programs.TaskExit,
		"cgroup_mkdir":       programs.CgroupBirth,
		"cgroup_rmdir":       programs.CgroupDeath,
	} {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: p})
		if err != nil {
			return fmt.Errorf("attach to tracepoint %s: %w", name, err)
		}
		g.births = append(g.births, l)
		if err := pin(l, filepath.Join(g.room.generationDir(g.Number), name)); err != nil {
			return err
		}
	}
	return nil
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
