package netprio

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/policy"
)

// A Tree is the net_prio groups of one scope. Its methods act in the mount and
// network namespaces of the calling thread; those that change something are for
// one caller at a time, who holds the scope's lock, but for Watch, which runs
// beside them.
type Tree struct {
	// Base is the directory below the root of the hierarchy that holds the
	// groups, absolute as in /proc/PID/cgroup; "/" or "" for the root itself, as
	// in the recipe that people follow by hand.
	Base string
	// RunDir is the scope's run directory. It holds netprio.json, and the mount
	// point where there is no better place.
	RunDir string
}

// group is the path of a group below the root of the hierarchy.
func (t Tree) group(name string) string { return path.Join("/", t.Base, name) }

// Apply makes the groups prio-0 to prio-15, and a group for each name in extra,
// which NamedGroup gives, with a map entry for every interface that there is
// now. It mounts the hierarchy if it is mounted nowhere. Extra groups of an
// earlier Apply that are not wanted any more are removed and their processes
// put back. Nothing that is right already is written.
func (t Tree) Apply(extra map[string]policy.Priority) error {
	want := make(map[string]policy.Priority, policy.Levels+len(extra))
	for level := range policy.Level(policy.Levels) {
		want[LevelGroup(level)] = policy.Priority{Default: level}
	}
	for name, priority := range extra {
		if !isGroup(name) || !strings.HasPrefix(name, "weir-") {
			return fmt.Errorf("apply net_prio group %q: not a name of NamedGroup", name)
		}
		want[name] = priority
	}
	if err := checkNetns(); err != nil {
		return fmt.Errorf("apply net_prio: %w", err)
	}
	return t.exclusively(func() error { return t.apply(want) })
}

// apply is Apply where nobody else writes maps.
func (t Tree) apply(want map[string]policy.Priority) error {
	m, known, err := t.load()
	if err != nil {
		return err
	}
	if err := t.ensureMount(m, known); err != nil {
		return err
	}
	m.forgetExited()
	for _, name := range slices.Sorted(maps.Keys(m.Want)) {
		if _, ok := want[name]; !ok {
			if err := t.removeGroup(m, name); err != nil {
				return err
			}
		}
	}
	m.Want = want
	if err := t.save(m); err != nil {
		return err
	}
	if err := t.ensureBase(m); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if err := t.ensureGroup(m, name); err != nil {
			return err
		}
	}
	return nil
}

// ensureMount finds or mounts the hierarchy. Where it can not be mounted, all is
// as before: known says whether there was a memory.
func (t Tree) ensureMount(m *memory, known bool) error {
	found, err := findMount(m.Mount)
	if err != nil {
		return err
	}
	if found != "" {
		m.mountedAt(found)
		return nil
	}
	dir, made, err := t.mountPoint()
	if err != nil {
		return err
	}
	before := *m
	// A point that was made before and is still there was made by us.
	m.MadePoint = made || m.MadePoint && m.Mount == dir
	m.Mount, m.Mounted = dir, true
	if err := t.save(m); err != nil {
		return err
	}
	if err := mountHierarchy(dir); err != nil {
		if made {
			_ = os.Remove(dir)
		}
		if known {
			return errors.Join(err, t.save(&before))
		}
		return errors.Join(err, os.Remove(t.memoryPath()))
	}
	return nil
}

// ensureBase makes the directories down to the base.
func (t Tree) ensureBase(m *memory) error {
	at := ""
	for _, part := range strings.Split(strings.Trim(path.Join("/", t.Base), "/"), "/") {
		if part == "" {
			continue
		}
		at += "/" + part
		if _, err := t.ensureDir(m, at); err != nil {
			return err
		}
	}
	return nil
}

// ensureDir makes a directory of the hierarchy and remembers that we did.
func (t Tree) ensureDir(m *memory, dir string) (existed bool, err error) {
	if _, err := os.Stat(m.Mount + dir); err == nil {
		return true, nil
	}
	if !m.made(dir) {
		m.Made = append(m.Made, dir)
		if err := t.save(m); err != nil {
			return false, err
		}
	}
	if err := os.Mkdir(m.Mount+dir, 0o755); err != nil {
		return false, fmt.Errorf("make net_prio group: %w", err)
	}
	return false, nil
}

// ensureGroup makes a group with its map. The map of a group that others made
// is remembered.
func (t Tree) ensureGroup(m *memory, name string) error {
	dir := t.group(name)
	existed, err := t.ensureDir(m, dir)
	if err != nil {
		return err
	}
	if _, known := m.Before[dir]; existed && !known && !m.made(dir) {
		before, err := readMap(m.Mount + dir)
		if err != nil {
			return err
		}
		m.Before[dir] = before
		if err := t.save(m); err != nil {
			return err
		}
	}
	return writeMap(m.Mount+dir, func(link string) uint32 { return entry(m.Want[name], link) })
}

// absent reports an error that says that a cgroup is not there.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}
