package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// An Adoption brings connections that were open before the bounds of a generation into
// them. Of what the kernel does not tell it knows over all network namespaces, so it is
// one for all of them.
type Adoption struct{ programs *ebpf.Collection }

// Adoption loads what a generation with bounds needs for that. scope is the kernfs id of the
// scope's cgroup. It returns ErrAbsent where the generation has no bounds, and ErrTooLate
// where the kernel lets no program set what open connections may take.
func (g *Generation) Adoption(scope uint64, o MemoryOptions) (*Adoption, error) {
	t, err := g.openBounds()
	if err != nil {
		return nil, err
	}
	spec, err := loadAdopt()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		spec.Variables[adoptVarGeneration].Set(g.Number),
		spec.Variables[adoptVarScope].Set(scope),
		spec.Variables[adoptVarAskedSndbuf].Set(o.Send),
		spec.Variables[adoptVarAskedRcvbuf].Set(o.Receive),
	)
	if err != nil {
		return nil, fmt.Errorf("set adopt: %w", err)
	}
	delete(spec.Programs, adoptProgDisown)
	options := g.shared(spec)
	for name, table := range map[string]*ebpf.Map{adoptMapBounds: t.bounds, adoptMapContracts: t.contracts} {
		spec.Maps[name].MaxEntries = table.MaxEntries()
		options.MapReplacements[name] = table
	}
	all, err := loadIterators(spec, *options)
	if err != nil {
		return nil, err
	}
	return &Adoption{all}, nil
}

// Adopt puts the connections that are open in the calling thread's network namespace below
// the bounds. It returns ErrTooLate where the kernel does not tell of some of them:
// those are only counted, for Squeeze.
func (a *Adoption) Adopt() error {
	if err := iterate(a.programs.Programs[adoptProgAdopt]); err != nil {
		return err
	}
	left, err := read[uint64, uint64](a.programs.Maps[adoptMapUnheard])
	if err == nil && len(left) > 0 {
		err = ErrTooLate
	}
	return err
}

// Squeeze fits the connections of the calling thread's network namespace that were only
// counted, once, each to its even part of soft. So they hold no more than soft together,
// beside what those hold that are watched.
func (a *Adoption) Squeeze() error { return iterate(a.programs.Programs[adoptProgSqueeze]) }

// Close releases the descriptors.
func (a *Adoption) Close() { a.programs.Close() }

// A Holding is what a connection had of the bounds that it was found to be below.
type Holding struct {
	Bound         bool // one of them still stands
	Send, Receive HeldBuffer
}

// A HeldBuffer is one of a socket's buffers, in bytes, as SO_SNDBUF and SO_RCVBUF tell.
type HeldBuffer struct {
	Given uint32 // as it was fitted to a bound; 0: it was not
	Own   uint32 // as it was before
	Set   bool   // by the application, not by TCP
}

// Holding returns what a connection had of the bounds of its memory, and whether it was
// ever below one.
func (s *Sockets) Holding(fd int) (h Holding, known bool) {
	var v adoptHolding
	if err := s.holdings.Lookup(uint32(fd), &v); err != nil {
		return h, false
	}
	for _, key := range v.Pools {
		h.Bound = h.Bound || key != 0 && s.pools.Lookup(key, new(adoptPool)) == nil
	}
	h.Send = HeldBuffer{Given: v.Sndbuf, Own: v.OwnSndbuf, Set: v.Locks&sendLock != 0}
	h.Receive = HeldBuffer{Given: v.Rcvbuf, Own: v.OwnRcvbuf, Set: v.Locks&receiveLock != 0}
	return h, true
}

// Of struct holding's locks.
const (
	sendLock    = 1 << 0 // SOCK_SNDBUF_LOCK
	receiveLock = 1 << 1 // SOCK_RCVBUF_LOCK
)

// ForgetHolding forgets what a connection had of bounds.
func (s *Sockets) ForgetHolding(fd int) error { return forgetIn(s.holdings, fd) }

// ForgetHoldings does so with all connections in the calling thread's network namespace
// whose bounds are gone: also those that no process has a descriptor of. It returns ErrTooLate.
func (s *Sockets) ForgetHoldings() error {
	spec, err := loadAdopt()
	if err != nil {
		return err
	}
	spec.Programs = map[string]*ebpf.ProgramSpec{adoptProgDisown: spec.Programs[adoptProgDisown]}
	all, err := loadIterators(spec, ebpf.CollectionOptions{
		MapReplacements: map[string]*ebpf.Map{adoptMapHoldings: s.holdings, adoptMapPools: s.pools},
		Cache:           kernelTypes,
	})
	if err != nil {
		return err
	}
	defer all.Close()
	return iterate(all.Programs[adoptProgDisown])
}
