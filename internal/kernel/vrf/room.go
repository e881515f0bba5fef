package vrf

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/plan"
)

// A Room is the VRFs of one scope. Its methods act in the caller's network namespace, and
// are for one caller at a time, who holds the scope's lock.
type Room struct {
	RunDir string // the scope's run directory: it holds vrf.json
}

// Apply makes these VRFs, and no others of ours, moves links into and out of them, and gives them what is
// declared. at is
// called before each thing that is done, with what that is, and may break off with an
// error; the next Apply goes on from there. Nothing that is right already is touched.
func (r Room) Apply(want map[string]plan.VRF, at func(what string) error) error {
	m, err := r.load()
	if err != nil {
		return err
	}
	if len(want)+len(m.Made) == 0 && m.Before == nil { // else somebody was cut off with that to put back
		return nil
	}
	w := work{room: r, memory: m, at: at}
	// One whose table is another now is a new one: its links wait in the main table.
	kept := maps.Clone(want)
	for name, table := range m.Made {
		if v, ok := kept[name]; ok && v.Table != table {
			delete(kept, name)
		}
	}
	if len(kept) < len(want) {
		if err := w.reach(kept, true); err != nil {
			return err
		}
	}
	return w.reach(want, len(want) > 0)
}

// Remove takes all of ours away: links are where they were, and so is all else. What is
// absent already is no error.
func (r Room) Remove(at func(what string) error) error { return r.Apply(nil, at) }

// Any reports whether there may be something of ours.
func (r Room) Any() (bool, error) {
	m, err := r.load()
	return err == nil && (len(m.Made) > 0 || m.Before != nil), err
}

// work is one Apply.
type work struct {
	room   Room
	memory *memory
	at     func(string) error
}

// reach brings what is there to what is wanted. Without VRFs all that holds for all of
// them goes too, unless more are to come.
func (w *work) reach(want map[string]plan.VRF, more bool) error {
	m := w.memory
	if m.Before == nil {
		before, err := lookBefore()
		if err != nil {
			return err
		}
		m.Before = before
	}
	for name, v := range want {
		m.Made[name] = v.Table
	}
	if err := w.room.save(m); err != nil {
		return err
	}
	if len(want) > 0 {
		if err := w.common(); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if err := w.make(name, want[name].Table); err != nil {
			return err
		}
	}
	if len(want) > 0 {
		if err := w.rules(); err != nil {
			return err
		}
	}
	if err := w.move(want); err != nil {
		return err
	}
	if err := w.give(want); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Made)) {
		if _, wanted := want[name]; wanted {
			continue
		}
		if err := w.unmake(name); err != nil {
			return err
		}
	}
	if more {
		return nil
	}
	return w.restore()
}

// step breaks off where it is asked to, or does it.
func (w *work) step(what string, do func() error) error {
	if w.at != nil {
		if err := w.at(what); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// device finds a device of ours by its name; nil if it is not there, or is no VRF.
func device(name string) (*netlink.Vrf, error) {
	l, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find device %s: %w", name, err)
	}
	v, _ := l.(*netlink.Vrf)
	return v, nil
}
