package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// Sockets is what the kernel remembers of single sockets and processes. It is
// reached through a descriptor of the socket, one's own or a duplicate.
type Sockets struct {
	memory
	changed bool // something that packets go by, since Settle
}

// Sockets opens the memory of a scope that was published before.
func (r Room) Sockets() (*Sockets, error) {
	m, err := r.openMemory(false)
	if err != nil {
		return nil, err
	}
	return &Sockets{memory: m}, nil
}

// An Identity is who made a socket, as far as rules ask for it.
type Identity struct {
	Tag     uint32 // plan.Contract.Tag of an explicit contract; 0: none
	Exe     plan.ExeID
	Cgroup1 uint64 // kernfs id; 0: unknown
}

// Identity returns what is remembered of a socket; the zero Identity is nothing.
func (s *Sockets) Identity(fd int) (Identity, error) {
	var v linkEgressIdentity
	err := s.identities.Lookup(uint32(fd), &v)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return Identity{}, nil
	}
	if err != nil {
		return Identity{}, fmt.Errorf("read identity of socket: %w", err)
	}
	return identityOf(v), nil
}

func identityOf(v linkEgressIdentity) Identity {
	return Identity{Tag: v.Tag, Exe: plan.ExeID{Inode: v.Inode, Device: v.Device}, Cgroup1: v.Cgroup1}
}

// Identify writes who made a socket and lets its packets ask anew, after Settle all of them. It
// reports whether anything changed.
func (s *Sockets) Identify(fd int, i Identity) (changed bool, err error) {
	have, err := s.Identity(fd)
	if err != nil {
		return false, err
	}
	if have == i {
		return false, nil
	}
	v := linkEgressIdentity{Tag: i.Tag, Device: i.Exe.Device, Inode: i.Exe.Inode, Cgroup1: i.Cgroup1}
	if err := s.identities.Put(uint32(fd), v); err != nil {
		return false, fmt.Errorf("write identity of socket: %w", err)
	}
	return true, s.forget(fd)
}

// forget lets the socket's packets, those that it sends and those that it
// receives, find anew under which contract they go and what else binds them.
func (s *Sockets) forget(fd int) error {
	s.changed = true
	for _, known := range []*ebpf.Map{s.verdicts, s.arrivals} {
		if err := known.Delete(uint32(fd)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("forget contract of socket: %w", err)
		}
	}
	return nil
}

// Verdict returns under which contract the socket's last packet went. It is not
// known before the first packet, and not for sockets whose packets are looked
// at one by one.
func (s *Sockets) Verdict(fd int) (id plan.ContractID, generation uint32, known bool) {
	var k linkEgressKnown
	if err := s.verdicts.Lookup(uint32(fd), &k); err != nil {
		return 0, 0, false
	}
	return plan.ContractID(k.Verdict.Contract), k.Verdict.Generation, k.ofAll()
}

// ofAll says whether the verdict holds for all packets of the socket, on one link at least.
func (k linkEgressKnown) ofAll() bool {
	return linkEgressLinkNumber(k.Verdict.Link)&linkEgressLinkNumberNO_LINK != linkEgressLinkNumberNO_LINK
}

// Tasks returns the tags of processes.
func (s *Sockets) Tasks() (map[uint32]uint32, error) { return read[uint32, uint32](s.tasks) }

// TagTask gives a process, and every child that it makes from now on, a tag.
func (s *Sockets) TagTask(pid, tag uint32) error {
	if err := s.tasks.Put(pid, tag); err != nil {
		return fmt.Errorf("tag process %d: %w", pid, named(err))
	}
	return nil
}

// UntagTask takes a process' tag away. A process without one is fine.
func (s *Sockets) UntagTask(pid uint32) error {
	if err := s.tasks.Delete(pid); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("untag process %d: %w", pid, err)
	}
	return nil
}

// Settle waits until all packets go by what is remembered of their sockets now, up to two ticks of the kernel's clock, each of
// 1 to 10 ms, if anything has changed: link_egress asks a socket that rests once in a tick (bpf/rests.h).
func (s *Sockets) Settle() {
	for range 2 { // the first may have begun before the change
		for began := tick(); s.changed && tick() == began; {
			time.Sleep(time.Millisecond)
		}
	}
	s.changed = false
}

// tick is the time at which the kernel's clock ticked last.
func tick() (now unix.Timespec) {
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &now); err != nil {
		panic(err) // each kernel has that clock
	}
	return now
}

// Close releases the descriptors, once all packets go by what was changed.
func (s *Sockets) Close() {
	s.Settle()
	s.memory.Close()
}
