package bpf

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"

	"github.com/weir-net/weir/internal/plan"
)

// A Counter is what passed under one contract on one link.
type Counter struct {
	Packets uint64
	Bytes   uint64 // as on the wire, link-layer headers included
}

// Counters returns the counters of a link for all contracts that have any.
func (g *Generation) Counters(index int) (map[plan.ContractID]Counter, error) {
	t, err := g.openLink(index)
	if err != nil {
		return nil, err
	}
	return readCounters(t.counters)
}

// Counter returns the counter of one contract on a link.
func (g *Generation) Counter(index int, id plan.ContractID) (Counter, error) {
	t, err := g.openLink(index)
	if err != nil {
		return Counter{}, err
	}
	var values []linkEgressCounter
	if err := t.counters.Lookup(uint32(id), &values); err != nil {
		return Counter{}, fmt.Errorf("read counter %d of link %d: %w", id, index, err)
	}
	one := map[plan.ContractID]Counter{}
	addCounter(one, uint32(id), values)
	return one[id], nil
}

func readCounters(m *ebpf.Map) (map[plan.ContractID]Counter, error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("count CPUs: %w", err)
	}
	n := int(m.MaxEntries())
	keys, values := make([]uint32, n), make([]linkEgressCounter, n*cpus)
	var cursor ebpf.MapBatchCursor
	count, err := m.BatchLookup(&cursor, keys, values, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return countersOneByOne(m, cpus)
	}
	counters := map[plan.ContractID]Counter{}
	for i := range count {
		addCounter(counters, keys[i], values[i*cpus:(i+1)*cpus])
	}
	return counters, nil
}

// countersOneByOne serves kernels whose per-CPU arrays have no batches (before 5.13).
func countersOneByOne(m *ebpf.Map, cpus int) (map[plan.ContractID]Counter, error) {
	counters := map[plan.ContractID]Counter{}
	values := make([]linkEgressCounter, cpus)
	for id := range m.MaxEntries() {
		if err := m.Lookup(id, &values); err != nil {
			return nil, fmt.Errorf("read counter %d: %w", id, err)
		}
		addCounter(counters, id, values)
	}
	return counters, nil
}

func addCounter(counters map[plan.ContractID]Counter, id uint32, values []linkEgressCounter) {
	var c Counter
	for _, v := range values {
		c.Packets += v.Packets
		c.Bytes += v.Bytes
	}
	if c.Packets > 0 {
		counters[plan.ContractID(id)] = c
	}
}

// olderCounters returns the counters that the newest older generation has for a
// link, nil if there are none.
func (g *Generation) olderCounters(index int, spec *ebpf.MapSpec) *ebpf.Map {
	all, err := g.room.Generations()
	if err != nil {
		return nil
	}
	for _, n := range slices.Backward(all) {
		if n >= g.Number {
			continue
		}
		m, err := openTable(filepath.Join(g.room.generationDir(n), strconv.Itoa(index), linkEgressMapCounters), spec)
		if err == nil {
			return m
		}
	}
	return nil
}

// carryOn starts the counters of a generation where those of the older one
// stand, and clears the fresh ones. Where the table had to grow, what passes
// between this and the attachment is missing from them.
func carryOn(older, m *ebpf.Map, fresh []plan.ContractID) error {
	if older == nil {
		return nil
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count CPUs: %w", err)
	}
	start := map[plan.ContractID]Counter{}
	if older.MaxEntries() != m.MaxEntries() {
		if start, err = readCounters(older); err != nil {
			return err
		}
	}
	for _, id := range fresh {
		start[id] = Counter{}
	}
	keys, values := make([]uint32, 0, len(start)), make([]linkEgressCounter, 0, len(start)*cpus)
	for id, c := range start {
		if uint32(id) >= m.MaxEntries() {
			continue // of a contract that is gone
		}
		sum := make([]linkEgressCounter, cpus)
		sum[0] = linkEgressCounter{Packets: c.Packets, Bytes: c.Bytes}
		keys, values = append(keys, uint32(id)), append(values, sum...)
	}
	if len(keys) == 0 {
		return nil
	}
	if _, err := m.BatchUpdate(keys, values, nil); err == nil {
		return nil
	}
	for i, id := range keys {
		if err := m.Put(id, values[i*cpus:(i+1)*cpus]); err != nil {
			return fmt.Errorf("write counter %d: %w", id, err)
		}
	}
	return nil
}
