package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// temporary is the pattern of files that are being written.
const temporary = ".weir-*"

// readJSON reads a file into v and leaves v alone where there is no file.
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
	f, err := os.CreateTemp(s.Run, temporary)
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(b); err != nil {
		f.Close()
		return fmt.Errorf("write record: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record: %w", err)
	}
	return nil
}
