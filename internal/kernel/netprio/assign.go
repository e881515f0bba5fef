package netprio

import (
	"errors"
	"fmt"
	"path"
)

// Assign moves a process into a group of the last Apply. Its sockets get the
// group's priorities too, those shared with other processes included; its
// future children inherit the group, those that it has already do not. Where
// the process was is remembered. It wraps ErrNoGroup or ErrGone.
func (t Tree) Assign(pid uint32, group string) error {
	m, _, err := t.load()
	if err != nil {
		return err
	}
	if _, ok := m.Want[group]; !ok {
		return fmt.Errorf("assign process %d to %q: %w", pid, group, ErrNoGroup)
	}
	mount, err := findMount(m.Mount)
	if err != nil {
		return err
	} else if mount == "" {
		return fmt.Errorf("assign process %d to %q: hierarchy is not mounted: %w", pid, group, ErrNoGroup)
	}
	m.mountedAt(mount)
	p, err := readProcess(pid)
	if err != nil {
		return fmt.Errorf("assign to %q: %w", group, err)
	}
	from := t.origin(m, pid, p)
	if was, ok := m.Moved[pid]; !ok || was != (move{p.start, from, group}) {
		m.Moved[pid] = move{p.start, from, group}
		if err := t.save(m); err != nil {
			return err
		}
	}
	if p.group == t.group(group) {
		return nil
	}
	return movePID(m.Mount+t.group(group), pid)
}

// Clear puts a process back where it was before it, or the ancestor from which
// it inherited the group, was assigned. A process that is in none of our
// groups, or has exited, is left alone.
func (t Tree) Clear(pid uint32) error {
	m, known, err := t.load()
	if err != nil || !known {
		return err
	}
	m.forgetExited()
	p, err := readProcess(pid)
	if err == nil && t.ours(p.group) {
		if err = t.ensureMount(m, known); err == nil {
			err = t.putBack(m, pid, p)
		}
	}
	if err != nil && !errors.Is(err, ErrGone) {
		return err
	}
	delete(m.Moved, pid)
	return t.save(m)
}

// ours reports whether a path of the hierarchy is one of our groups.
func (t Tree) ours(group string) bool {
	return group != "" && path.Dir(group) == path.Join("/", t.Base) && isGroup(path.Base(group))
}

// origin is where a process was, or is if it is in none of our groups: its own
// memory, else that of the nearest ancestor. Without any it is in a group that
// others had made, where they put it, or it goes to the root.
func (t Tree) origin(m *memory, pid uint32, p process) string {
	if !t.ours(p.group) {
		return p.group
	}
	unknown := "/"
	if !m.made(p.group) {
		unknown = p.group
	}
	for range 1000 { // a chain that changes while it is read might be endless
		if was, ok := m.Moved[pid]; ok && was.Start == p.start {
			return was.From
		}
		parent, err := readProcess(p.parent)
		if p.parent <= 1 || err != nil {
			break
		}
		pid, p = p.parent, parent
	}
	return unknown
}

// putBack moves a process to its origin, or to the nearest directory above it
// that still exists.
func (t Tree) putBack(m *memory, pid uint32, p process) error {
	for to := t.origin(m, pid, p); ; to = path.Dir(to) {
		err := movePID(m.Mount+to, pid)
		if errors.Is(err, ErrGone) {
			return nil
		}
		if to == "/" || !errors.Is(err, ErrNoGroup) {
			return err
		}
	}
}
