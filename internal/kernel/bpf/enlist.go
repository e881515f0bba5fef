package bpf

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// ErrTooLate says that this kernel tells of a connection's round trips only if that
// was asked for when it was established.
var ErrTooLate = errors.New("this kernel can not be asked about open connections")

// Enlist lets pace be told of the round trips of the connections that are open in
// the calling thread's network namespace. It returns ErrTooLate.
func Enlist() error {
	_ = rlimit.RemoveMemlock()
	spec, err := loadEnlist()
	if err != nil {
		return err
	}
	var objects struct {
		Program *ebpf.Program  `ebpf:"enlist"`
		Refused *ebpf.Variable `ebpf:"refused"`
	}
	// Before 5.15 the verifier refuses the program, from then until 6.12 each socket.
	if err := spec.LoadAndAssign(&objects, nil); err != nil {
		return fmt.Errorf("%w: load enlist: %w", ErrTooLate, err)
	}
	defer objects.Program.Close()
	it, err := link.AttachIter(link.IterOptions{Program: objects.Program})
	if err != nil {
		return fmt.Errorf("attach enlist: %w", err)
	}
	defer it.Close()
	sockets, err := it.Open()
	if err != nil {
		return fmt.Errorf("run enlist: %w", err)
	}
	defer sockets.Close()
	if _, err := io.Copy(io.Discard, sockets); err != nil {
		return fmt.Errorf("run enlist: %w", err)
	}
	var refused uint64
	if err := objects.Refused.Get(&refused); err != nil {
		return fmt.Errorf("read enlist: %w", err)
	}
	if refused > 0 {
		return ErrTooLate
	}
	return nil
}
