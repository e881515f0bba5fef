package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// AttachPace puts pace on the scope's cgroup, in place of an older one in one step.
func (g *Generation) AttachPace() error {
	return g.attachSockOps(parsePace, paceProgPace, g.room.pacePin(), nil)
}

// DetachPace takes pace off the scope's cgroup. A cgroup without it is fine.
func (r Room) DetachPace() error { return removePinned(r.pacePin()) }

// PaceAttached reports whether pace runs on the scope's cgroup.
func (r Room) PaceAttached() bool { return runsOnCgroup(r.pacePin()) }

// AttachWindow is AttachPace of window, which knows what the sockets of contracts may receive
// by the tables of [Generation.LoadReceive].
func (g *Generation) AttachWindow() error {
	t, err := g.openReceive()
	if err != nil {
		return err
	}
	return g.attachSockOps(parseWindow, windowProgWindow, g.room.windowPin(), t.contracts)
}

// DetachWindow takes window off the scope's cgroup. A cgroup without it is fine.
func (r Room) DetachWindow() error { return removePinned(r.windowPin()) }

// WindowAttached reports whether window runs on the scope's cgroup.
func (r Room) WindowAttached() bool { return runsOnCgroup(r.windowPin()) }

// attachSockOps puts a program on the scope's cgroup that TCP asks, with the contracts that
// it looks up, if any.
func (g *Generation) attachSockOps(parse func() (*ebpf.CollectionSpec, error), name, pin string, contracts *ebpf.Map) error {
	spec, err := copied(parse)
	if err != nil {
		return err
	}
	o := g.shared(spec)
	if contracts != nil {
		spec.Maps[windowMapContracts].MaxEntries = contracts.MaxEntries()
		o.MapReplacements[windowMapContracts] = contracts
	}
	all, err := ebpf.NewCollectionWithOptions(spec, *o)
	if err != nil {
		return fmt.Errorf("load %s: %w", name, err)
	}
	defer all.Close()
	return replace(pin, all.Programs[name], func() (link.Link, error) {
		return link.AttachCgroup(link.CgroupOptions{
			Path: g.room.Cgroup, Attach: ebpf.AttachCGroupSockOps, Program: all.Programs[name],
		})
	})
}

// Pace returns the pace that a connection below a limit has been given and the one
// that it had before, in bytes a second, NoPace if it had none. The first is 0 where
// it was given none.
func (s *Sockets) Pace(fd int) (own, given uint32) { return heldBack(s.paces, fd) }

// NoPace is the pace of a connection that may send as fast as it can.
const NoPace = 1<<32 - 1

// ForgetPace forgets that a connection was paced.
func (s *Sockets) ForgetPace(fd int) error { return forgetIn(s.paces, fd) }

// Window is Pace of the most that a connection offers its peer, in bytes.
func (s *Sockets) Window(fd int) (own, given uint32) { return heldBack(s.windows, fd) }

// ForgetWindow forgets that a connection's window was held.
func (s *Sockets) ForgetWindow(fd int) error { return forgetIn(s.windows, fd) }

func heldBack(known *ebpf.Map, fd int) (own, given uint32) {
	var v limitPaced
	if err := known.Lookup(uint32(fd), &v); err != nil {
		return 0, 0
	}
	return v.Own, v.Pace
}

func forgetIn(known *ebpf.Map, fd int) error {
	if err := known.Delete(uint32(fd)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget what held socket back: %w", err)
	}
	return nil
}
