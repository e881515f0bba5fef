package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// unfinished is the suffix of a file that is being written. There is one writer,
// who holds the lock: what a broken-off write has left, the next one overwrites.
const unfinished = ".new"

// readJSON reads a file into v and leaves v alone where there is no file. What
// of a damaged file could be read is in v.
func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read record: %w", err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read record %s: %w", path, err)
	}
	return nil
}

// writeJSON writes a file so that a reader, or the next one after a crash, finds
// either the old or the new. It does not wait for a disk: the run directory does
// not outlive the kernel whose state it records.
func (s Scope) writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	if err := os.MkdirAll(s.Run, 0o755); err != nil {
		return fmt.Errorf("create run directory: %w", err)
	}
	if err := os.WriteFile(path+unfinished, b, 0o600); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// remove removes a file, and what a write that was broken off has left of it.
func remove(path string) error {
	for _, p := range []string{path + unfinished, path} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove record: %w", err)
		}
	}
	return nil
}
