package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/weir-net/weir/internal/plan"
)

// cpus is among how many CPUs a budget divides what it gives ahead: those that are on.
var cpus = sync.OnceValue(func() uint64 {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err == nil {
		if online, err := plan.ParseCPUs(string(text)); err == nil && len(online) > 0 {
			return uint64(len(online))
		}
	}
	return uint64(runtime.NumCPU())
})

// forfeit takes from all CPUs what a budget has given them ahead: it was of another limit.
func (g *Generation) forfeit(n budgetNumber) error {
	possible, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("find CPUs: %w", err)
	}
	err = g.memory.credits.Put(uint32(n), make([]uint64, possible))
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) { // there is no room for any
		return fmt.Errorf("take back what limit %d gave: %w", n, err)
	}
	return nil
}
