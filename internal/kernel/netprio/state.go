package netprio

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/weir-net/weir/internal/policy"
)

// State is what was asked for and what is there.
type State struct {
	Mount   string // of the hierarchy; "" if it is not mounted
	Mounted bool   // by Apply
	Want    map[string]policy.Priority
	Groups  map[string]Group  // the groups below the base, by name, whoever made them
	Moved   map[uint32]string // processes that Assign moved and that live -> group
	Strays  map[uint32]string // those of them that are elsewhere now -> path below the hierarchy's root
}

// A Group is one group as the kernel has it.
type Group struct {
	Map       map[string]uint32 // interface -> priority; all of the initial network namespace
	Processes []uint32
}

// A Drift is a difference between what was asked for and what is there.
type Drift struct {
	Group     string
	Missing   bool   // the group is not there
	Link      string // else: this entry of its map differs
	Want, Got uint32
}

// Drift lists the differences in the order of groups and links; none if all
// groups are as Apply made them.
func (s State) Drift() []Drift {
	var list []Drift
	for _, name := range slices.Sorted(maps.Keys(s.Want)) {
		group, ok := s.Groups[name]
		if !ok {
			list = append(list, Drift{Group: name, Missing: true})
			continue
		}
		for _, link := range slices.Sorted(maps.Keys(group.Map)) {
			if want, got := entry(s.Want[name], link), group.Map[link]; want != got {
				list = append(list, Drift{Group: name, Link: link, Want: want, Got: got})
			}
		}
	}
	return list
}

// Read reads everything back. It changes nothing, and a hierarchy that is not
// mounted is not an error.
func (t Tree) Read() (State, error) {
	m, _, err := t.load()
	if err != nil {
		return State{}, err
	}
	s := State{Want: m.Want, Groups: make(map[string]Group), Moved: make(map[uint32]string), Strays: make(map[uint32]string)}
	if s.Mount, err = findMount(m.Mount); err != nil {
		return State{}, err
	}
	s.Mounted = m.Mounted && m.Mount == s.Mount && s.Mount != ""
	if err := t.readMoved(m, &s); err != nil {
		return State{}, err
	}
	if s.Mount == "" {
		return s, nil
	}
	base := s.Mount + path.Join("/", t.Base)
	entries, err := os.ReadDir(base)
	if err != nil && !absent(err) {
		return State{}, fmt.Errorf("read net_prio groups: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !isGroup(e.Name()) {
			continue
		}
		group, err := readGroup(base + "/" + e.Name())
		if absent(err) {
			continue // removed meanwhile
		}
		if err != nil {
			return State{}, err
		}
		s.Groups[e.Name()] = group
	}
	return s, nil
}

func readGroup(dir string) (g Group, err error) {
	if g.Map, err = readMap(dir); err != nil {
		return Group{}, err
	}
	g.Processes, err = readProcs(dir)
	return g, err
}

func (t Tree) readMoved(m *memory, s *State) error {
	for pid, was := range m.Moved {
		p, err := readProcess(pid)
		if errors.Is(err, ErrGone) || err == nil && p.start != was.Start {
			continue
		}
		if err != nil {
			return err
		}
		s.Moved[pid] = was.Group
		if p.group != t.group(was.Group) {
			s.Strays[pid] = p.group
		}
	}
	return nil
}
