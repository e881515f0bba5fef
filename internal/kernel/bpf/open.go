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
	_ = rlimit.RemoveMemlock()
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
	all, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		MapReplacements: map[string]*ebpf.Map{openMapPaces: s.paces, openMapWindows: s.windows},
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
