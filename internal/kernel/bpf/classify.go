package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/weir-net/weir/internal/plan"
)

// Classify has the kernel say under which contract an Ethernet frame without a
// socket goes, by this generation's tables. Nothing is sent and nothing counted.
// A frame that is shorter than its Ethernet header is refused by the kernel.
func (g *Generation) Classify(frame []byte) (plan.ContractID, error) {
	p, err := g.loadClassify()
	if err != nil {
		return 0, err
	}
	defer p.Close()
	id, err := p.Run(&ebpf.RunOptions{Data: frame, Repeat: 1})
	if err != nil {
		return 0, fmt.Errorf("run classify: %w", err)
	}
	return plan.ContractID(id), nil
}

func (g *Generation) loadClassify() (*ebpf.Program, error) {
	spec, err := loadClassify()
	if err != nil {
		return nil, err
	}
	tuples, err := g.tuples()
	if err != nil {
		return nil, err
	}
	if err := spec.Variables[classifyVarTupleCount].Set(uint32(len(tuples))); err != nil {
		return nil, fmt.Errorf("set classify: %w", err)
	}
	var programs classifyPrograms
	if err := spec.LoadAndAssign(&programs, g.shared(spec)); err != nil {
		return nil, fmt.Errorf("load classify: %w", err)
	}
	return programs.Classify, nil
}
