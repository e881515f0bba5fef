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

// EnlistPace lets pace be told of the round trips of the connections that are open in
// the calling thread's network namespace. It returns ErrTooLate.
func (s *Sockets) EnlistPace() error { return s.eachOpen(openProgEnlist, tellRoundTrips) }

// EnlistWindow is EnlistPace of window, which is told of what they are about to send.
func (s *Sockets) EnlistWindow() error { return s.eachOpen(openProgEnlist, tellHeaders) }

// What TCP is asked to tell of a connection.
const (
	tellRoundTrips uint32 = 1 << 3 // BPF_SOCK_OPS_RTT_CB_FLAG
	tellHeaders    uint32 = 1 << 6 // BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG
)

// Unpace gives the connections that are open in the calling thread's network
// namespace the pace back that they had before they came below a limit: also those
// that no process has a descriptor of. It returns ErrTooLate.
func (s *Sockets) Unpace() error { return s.eachOpen(openProgUnpace, 0) }

// Unwindow is Unpace of the windows that they offer.
func (s *Sockets) Unwindow() error { return s.eachOpen(openProgUnwindow, 0) }

// eachOpen runs a program over the TCP sockets of the network namespace. word is what
// enlist asks for.
func (s *Sockets) eachOpen(name string, word uint32) error {
	spec, err := loadOpen()
	if err != nil {
		return err
	}
	if err := spec.Variables[openVarWord].Set(word); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	for other := range spec.Programs {
		if other != name {
			delete(spec.Programs, other)
		}
	}
	all, err := loadIterators(spec, ebpf.CollectionOptions{
		MapReplacements: map[string]*ebpf.Map{openMapPaces: s.paces, openMapWindows: s.windows},
		Cache:           kernelTypes,
	})
	if err != nil {
		return err
	}
	defer all.Close()
	if err := iterate(all.Programs[name]); err != nil {
		return err
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

// loadIterators loads programs that run over sockets.
func loadIterators(spec *ebpf.CollectionSpec, options ebpf.CollectionOptions) (*ebpf.Collection, error) {
	_ = rlimit.RemoveMemlock()
	all, err := ebpf.NewCollectionWithOptions(spec, options)
	var refusal *ebpf.VerifierError
	if errors.As(err, &refusal) || errors.Is(err, ebpf.ErrNotSupported) {
		return nil, fmt.Errorf("%w: %w", ErrTooLate, err)
	}
	if err != nil {
		return nil, fmt.Errorf("load what runs over sockets: %w", err)
	}
	return all, nil
}

// iterate runs a program over the TCP sockets of the calling thread's network namespace.
func iterate(program *ebpf.Program) error {
	it, err := link.AttachIter(link.IterOptions{Program: program})
	if err != nil {
		return fmt.Errorf("attach %s: %w", program, err)
	}
	defer it.Close()
	sockets, err := it.Open()
	if err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	defer sockets.Close()
	if _, err := io.Copy(io.Discard, sockets); err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
}
