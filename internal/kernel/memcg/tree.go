package memcg

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

var (
	// ErrNoHierarchy says that the memory controller of v1 is mounted nowhere.
	ErrNoHierarchy = errors.New("the v1 memory hierarchy is not mounted")

	// ErrInUse says that the sockets of a cgroup hold more than the limit that it shall have.
	ErrInUse = errors.New("its sockets hold more than that already")
)

// A Tree is the cgroups of the memory hierarchy that one scope limits. Its methods are for
// one caller at a time, who holds the scope's lock.
type Tree struct {
	Mount  string // of the v1 memory hierarchy; "" if it is not mounted
	RunDir string // the scope's run directory: it holds memcg.json
}

// Apply limits cgroups, each with all below it, which are paths below the root of the hierarchy, and
// gives those back what they had that an earlier Apply limited. A cgroup that is not there
// is no error. It returns ErrInUse and ErrNoHierarchy. Nothing that is right already is written.
func (t Tree) Apply(want map[string]policy.Size) error {
	m, err := t.load()
	if err != nil {
		return err
	}
	if len(want)+len(m.Before) > 0 && t.Mount == "" {
		return ErrNoHierarchy
	}
	m.Want = maps.Clone(want)
	if err := t.restore(m, func(group string) bool { return m.limitOf(group) == 0 }); err != nil {
		return err
	}
	if err := t.save(m); err != nil {
		return err
	}
	// Until none is new: one may be born while others are limited.
	for changed := true; changed; {
		if changed, err = t.limit(m); err != nil {
			return err
		}
	}
	return nil
}

// Remove gives all cgroups back what they had. What is absent already is no error.
func (t Tree) Remove() error { return t.Apply(nil) }

// limit gives each cgroup its limit and reports whether any had another.
func (t Tree) limit(m *memory) (changed bool, err error) {
	groups, err := t.groups(m)
	if err != nil {
		return false, err
	}
	var others []string
	for _, group := range groups {
		has, err := readNumber(t.Mount+group, limitFile)
		if absent(err) || err == nil && same(has, uint64(m.limitOf(group))) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("read TCP memory of %s: %w", t.Mount+group, err)
		}
		if _, known := m.Before[group]; !known {
			m.Before[group] = has
		}
		others = append(others, group)
	}
	if len(others) == 0 {
		return false, nil
	}
	if err := t.save(m); err != nil {
		return false, err
	}
	for _, group := range others {
		if err := writeLimit(t.Mount+group, uint64(m.limitOf(group))); err != nil {
			return false, err
		}
	}
	return true, nil
}

// restore gives some cgroups back what they had, and forgets it.
func (t Tree) restore(m *memory, some func(group string) bool) error {
	restored := false
	for _, group := range slices.Sorted(maps.Keys(m.Before)) {
		if !some(group) {
			continue
		}
		if err := writeLimit(t.Mount+group, m.Before[group]); err != nil {
			return err
		}
		delete(m.Before, group)
		restored = true
	}
	if !restored {
		return nil
	}
	return t.save(m)
}

// limitOf is the limit that a cgroup shall have: its own, or that of the nearest one above
// it; 0 if there is none.
func (m *memory) limitOf(group string) policy.Size {
	for ; group != "/"; group = path.Dir(group) {
		if limit, ok := m.Want[group]; ok {
			return limit
		}
	}
	return 0
}

// groups are the cgroups that shall have a limit and are there, those above first.
func (t Tree) groups(m *memory) (all []string, err error) {
	for root := range m.Want {
		if m.limitOf(path.Dir(root)) != 0 {
			continue // it is found below another
		}
		err := filepath.WalkDir(t.Mount+root, func(dir string, d fs.DirEntry, err error) error {
			switch {
			case absent(err):
				return nil
			case err != nil:
				return err
			case d.IsDir():
				all = append(all, strings.TrimPrefix(dir, t.Mount))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("walk cgroups: %w", err)
		}
	}
	slices.Sort(all)
	return all, nil
}
