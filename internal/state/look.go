package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A Look is for those who look at the record again and again: it is read anew
// only where it was written since.
type Look struct {
	Scope  Scope
	file   fs.FileInfo // of which record was read; nil: of none
	record *Record
}

// Record returns the record as it is now. Its journal and its proof are those of
// the moment at which the record itself was written last, or older.
func (l *Look) Record() (*Record, error) {
	// First look, then read: what is written in between is read again.
	file, err := os.Stat(l.Scope.recordFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look at record: %w", err)
	}
	if l.record != nil && sameWriting(l.file, file) {
		return l.record, nil
	}
	r, err := l.Scope.Load()
	if err != nil {
		return nil, err
	}
	l.file, l.record = file, r
	return r, nil
}

// sameWriting compares two looks at a file that every writing replaces.
func sameWriting(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}
