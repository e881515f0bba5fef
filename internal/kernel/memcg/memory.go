package memcg

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-net/weir/internal/policy"
)

// memory is what has been asked for and what was there before. It is written before each
// change, so that a change that was cut off can be undone too.
type memory struct {
	Before map[string]uint64      `json:"before"` // cgroup -> its limit, as the kernel had it
	Want   map[string]policy.Size `json:"want"`   // cgroup -> the limit of it and of all below it
}

func (t Tree) memoryPath() string { return filepath.Join(t.RunDir, "memcg.json") }

// load reads the memory, which is empty if there is none.
func (t Tree) load() (*memory, error) {
	m := &memory{}
	content, err := os.ReadFile(t.memoryPath())
	if err == nil {
		err = json.Unmarshal(content, m)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("read memcg state %s: %w", t.memoryPath(), err)
	}
	if m.Before == nil {
		m.Before = map[string]uint64{}
	}
	return m, nil
}

// save replaces the memory by one rename; one that says nothing is no file.
func (t Tree) save(m *memory) error {
	if len(m.Before)+len(m.Want) == 0 {
		if err := os.Remove(t.memoryPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove memcg state: %w", err)
		}
		return nil
	}
	content, err := json.MarshalIndent(m, "", "\t")
	if err == nil {
		err = os.MkdirAll(t.RunDir, 0o755)
	}
	next := t.memoryPath() + ".new"
	if err == nil {
		err = os.WriteFile(next, append(content, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(next, t.memoryPath())
	}
	if err != nil {
		return fmt.Errorf("write memcg state: %w", err)
	}
	return nil
}
