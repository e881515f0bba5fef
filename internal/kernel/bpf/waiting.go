package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// A Waiting is where acknowledgements wait that no link keeps: the indices of the device at whose
// egress they do, and of the one at whose ingress they come back. The zero Waiting is nowhere.
type Waiting struct{ At, Back int }

// WaitAt says where the acknowledgements wait of what sockets receive: to a generation before it is
// filled, and to one that is read before it is asked.
func (g *Generation) WaitAt(w Waiting) { g.waiting = w }

// LoadBack loads back, which sends on what has waited.
func (g *Generation) LoadBack() (*ebpf.Program, error) {
	spec, err := copied(parseBack)
	if err != nil {
		return nil, err
	}
	var programs backPrograms
	if err := spec.LoadAndAssign(&programs, g.shared(spec)); err != nil {
		return nil, fmt.Errorf("load back: %w", err)
	}
	return programs.Back, nil
}

// AttachBack puts back at the ingress of a device by tcx. It acts in the calling thread's network
// namespace.
func (g *Generation) AttachBack(index int) error {
	p, err := g.LoadBack()
	if err != nil {
		return err
	}
	defer p.Close()
	return attachTCX(g.room.backPin(), index, p, ebpf.AttachTCXIngress, link.Head())
}

// DetachBack takes back off. A device without it is fine.
func (r Room) DetachBack() error { return removePinned(r.backPin()) }

// BackID is [Room.AttachedID] of back.
func (r Room) BackID(index int) uint32 { return runsOnLink(r.backPin(), index) }
