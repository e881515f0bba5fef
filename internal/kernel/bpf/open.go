package bpf

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// ErrTooLate says that this kernel lets no program change connections that are
// open already.
var ErrTooLate = errors.New("this kernel lets no program change open connections")

// Enlist lets pace be told of the round trips of the connections that are open in
// the calling thread's network namespace. It returns ErrTooLate.
func (s *Sockets) Enlist() error { return s.eachOpen(openProgEnlist) }

// Unpace gives the connections that are open in the calling thread's network
// namespace the pace back that they had before they came below a limit: also those
// that no process has a descriptor of. It returns ErrTooLate.
func (s *Sockets) Unpace() error { return s.eachOpen(openProgUnpace) }

// eachOpen runs a program over the TCP sockets of the network namespace.
func (s *Sockets) eachOpen(name string) error {
	_ = rlimit.RemoveMemlock()
	spec, err := loadOpen()
	if err != nil {
		return err
	}
	for other := range spec.Programs {
		if other != name {
			delete(spec.Programs, other)
		}
	}
	all, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		MapReplacements: map[string]*ebpf.Map{openMapPaces: s.paces},
	})
	var refusal *ebpf.VerifierError
	switch {
	case errors.As(err, &refusal), errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("%w: load %s: %w", ErrTooLate, name, err)
	case err != nil:
		return fmt.Errorf("load %s: %w", name, err)
	}
	defer all.Close()
	it, err := link.AttachIter(link.IterOptions{Program: all.Programs[name]})
	if err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	defer it.Close()
	sockets, err := it.Open()
	if err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	defer sockets.Close()
	if _, err := io.Copy(io.Discard, sockets); err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	var refused uint64
	if err := all.Variables[openVarRefused].Get(&refused); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if refused > 0 {
		return ErrTooLate
	}
	return nil
}
