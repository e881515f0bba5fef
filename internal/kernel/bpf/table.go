package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ErrFull says that a table has no room for another entry. Each apply makes
// tables that are large enough for what it finds.
var ErrFull = errors.New("the table is full")

// named gives an error of a write its name, where it has one.
func named(err error) error {
	if errors.Is(err, unix.E2BIG) {
		return ErrFull
	}
	return err
}

// batch bounds how much memory one system call moves.
const batch = 4096

// fill writes all entries of a table, in batches where the kernel takes them:
// 10,000 entries are a few system calls instead of 10,000.
func fill[K comparable, V any](m *ebpf.Map, entries map[K]V) error {
	keys, values := make([]K, 0, len(entries)), make([]V, 0, len(entries))
	for k, v := range entries {
		keys, values = append(keys, k), append(values, v)
	}
	return fillSlices(m, keys, values)
}

func fillSlices[K, V any](m *ebpf.Map, keys []K, values []V) error {
	for start := 0; start < len(keys); start += batch {
		end := min(start+batch, len(keys))
		_, err := m.BatchUpdate(keys[start:end], values[start:end], nil)
		if errors.Is(err, ebpf.ErrNotSupported) {
			return fillOneByOne(m, keys[start:], values[start:])
		}
		if err != nil {
			return fmt.Errorf("fill table %s: %w", m, named(err))
		}
	}
	return nil
}

// fillOneByOne serves tables without batches: LPM tries before 5.13.
func fillOneByOne[K, V any](m *ebpf.Map, keys []K, values []V) error {
	for i := range keys {
		if err := m.Put(keys[i], values[i]); err != nil {
			return fmt.Errorf("fill table %s: %w", m, named(err))
		}
	}
	return nil
}

// read returns all entries of a table.
func read[K comparable, V any](m *ebpf.Map) (map[K]V, error) {
	entries := make(map[K]V)
	n := min(batch, m.MaxEntries())
	keys, values := make([]K, n), make([]V, n)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			entries[keys[i]] = values[i]
		}
		switch {
		case errors.Is(err, ebpf.ErrKeyNotExist):
			return entries, nil
		case errors.Is(err, ebpf.ErrNotSupported):
			return readOneByOne[K, V](m)
		case err != nil:
			return nil, fmt.Errorf("read table %s: %w", m, err)
		}
	}
}

func readOneByOne[K comparable, V any](m *ebpf.Map) (map[K]V, error) {
	entries := make(map[K]V)
	var k K
	var v V
	it := m.Iterate()
	for it.Next(&k, &v) {
		entries[k] = v
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("read table %s: %w", m, err)
	}
	return entries, nil
}
