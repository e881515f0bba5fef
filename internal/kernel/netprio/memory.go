package netprio

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/policy"
)

// memory is what has been asked for and what was there before. It is written
// before each change, so that a change that was cut off can be undone too.
type memory struct {
	Mount     string                       `json:"mount"`
	Mounted   bool                         `json:"mounted"`          // by us
	MadePoint bool                         `json:"made_mount_point"` // the directory under it too
	Made      []string                     `json:"made"`             // directories below Mount, parents first
	Before    map[string]map[string]uint32 `json:"before"`           // maps of groups that others had made
	Want      map[string]policy.Priority   `json:"want"`             // group -> its map
	Moved     map[uint32]move              `json:"moved"`            // process -> where it was
}

// A move is a process that Assign moved.
type move struct {
	Start uint64 `json:"start"` // tells the process from a later one with its id
	From  string `json:"from"`  // path below the root of the hierarchy
	Group string `json:"group"`
}

func (t Tree) memoryPath() string { return filepath.Join(t.RunDir, "netprio.json") }

// load reads the memory; known is false, and the memory empty, if there is none.
func (t Tree) load() (m *memory, known bool, err error) {
	m = &memory{}
	content, err := os.ReadFile(t.memoryPath())
	known = err == nil
	if known {
		err = json.Unmarshal(content, m)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read net_prio state %s: %w", t.memoryPath(), err)
	}
	if m.Before == nil {
		m.Before = make(map[string]map[string]uint32)
	}
	if m.Moved == nil {
		m.Moved = make(map[uint32]move)
	}
	return m, known, nil
}

// save replaces the memory by one rename.
func (t Tree) save(m *memory) error {
	content, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return fmt.Errorf("write net_prio state: %w", err)
	}
	next := t.memoryPath() + ".new"
	if err := os.WriteFile(next, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write net_prio state: %w", err)
	}
	if err := os.Rename(next, t.memoryPath()); err != nil {
		return fmt.Errorf("write net_prio state: %w", err)
	}
	return nil
}

func (m *memory) made(path string) bool { return slices.Contains(m.Made, path) }

// mountedAt notes where the hierarchy is mounted. A place that is not the
// remembered one is not our mount, and ours is gone: its point goes too.
func (m *memory) mountedAt(mount string) {
	if m.Mount == mount {
		return
	}
	if m.MadePoint {
		_ = os.Remove(m.Mount)
	}
	m.Mount, m.Mounted, m.MadePoint = mount, false, false
}

// forgetExited forgets the processes that have exited since Assign moved them.
func (m *memory) forgetExited() {
	for pid, moved := range m.Moved {
		if p, err := readProcess(pid); errors.Is(err, ErrGone) || err == nil && p.start != moved.Start {
			delete(m.Moved, pid)
		}
	}
}

// exclusively runs fn while nobody else writes maps of these groups: Watch runs
// beside the verbs, and would write back what one of them has just taken away. It
// makes the run directory and locks it.
func (t Tree) exclusively(fn func() error) error {
	if err := os.MkdirAll(t.RunDir, 0o755); err != nil {
		return fmt.Errorf("lock net_prio groups: %w", err)
	}
	dir, err := os.Open(t.RunDir)
	if err != nil {
		return fmt.Errorf("lock net_prio groups: %w", err)
	}
	defer dir.Close() // which unlocks
	for {
		if err = unix.Flock(int(dir.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lock net_prio groups: %w", err)
	}
	return fn()
}
