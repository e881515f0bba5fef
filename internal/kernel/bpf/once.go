package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// runOnce has the kernel run a program once, on no packet, and returns its answer: so it
// changes in place what other CPUs are reading.
func (g *Generation) runOnce(spec *ebpf.CollectionSpec, program string) (answer uint32, err error) {
	c, err := ebpf.NewCollectionWithOptions(spec, *g.shared(spec))
	if err != nil {
		return 0, fmt.Errorf("load %s: %w", program, err)
	}
	defer c.Close()
	const frame = 14 // the kernel runs nothing on less
	answer, err = c.Programs[program].Run(&ebpf.RunOptions{Data: make([]byte, frame), Repeat: 1})
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", program, err)
	}
	return answer, nil
}
