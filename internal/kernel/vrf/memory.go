package vrf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
)

// memory is what was made, what was there before, and what is on its way. It is written
// before each change, so that one that was cut off can be finished or undone.
type memory struct {
	Made    map[string]uint32 `json:"made"`             // VRFs of ours, or about to be -> table
	Placed  map[int]string    `json:"placed"`           // links that we moved -> into which
	Sources []source          `json:"sources"`          // for connections that were open before
	Before  *before           `json:"before,omitempty"` // what holds for all VRFs, as it was
	Moving  *luggage          `json:"moving,omitempty"` // links that are on their way, with all that they had
	Added   map[string]*added `json:"added,omitempty"`  // VRFs -> what is declared of them and was not there
}

// A source is a rule that sends what comes from an address by a table.
type source struct {
	Address netip.Addr `json:"address"`
	Table   uint32     `json:"table"`
}

func (r Room) path() string { return filepath.Join(r.RunDir, "vrf.json") }

// load reads the memory, which is empty if there is none.
func (r Room) load() (*memory, error) {
	m := &memory{}
	content, err := os.ReadFile(r.path())
	if err == nil {
		err = json.Unmarshal(content, m)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("read vrf state %s: %w", r.path(), err)
	}
	if m.Made == nil {
		m.Made = map[string]uint32{}
	}
	if m.Added == nil {
		m.Added = map[string]*added{}
	}
	if m.Placed == nil {
		m.Placed = map[int]string{}
	}
	return m, nil
}

// save replaces the memory by one rename; one that says nothing is no file.
func (r Room) save(m *memory) error {
	if len(m.Made) == 0 && m.Before == nil && m.Moving == nil {
		if err := os.Remove(r.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove vrf state: %w", err)
		}
		return nil
	}
	content, err := json.Marshal(m)
	if err == nil {
		err = os.MkdirAll(r.RunDir, 0o755)
	}
	next := r.path() + ".new"
	if err == nil {
		err = os.WriteFile(next, append(content, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(next, r.path())
	}
	if err != nil {
		return fmt.Errorf("write vrf state: %w", err)
	}
	return nil
}
