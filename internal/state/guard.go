package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// LockAsGuard is what the guard of a pending change holds for as long as it
// lives, whatever ends it: a process id alone may be another's by the time
// somebody looks. It waits for a guard that is on its way out.
func (s Scope) LockAsGuard() (*Lock, error) {
	if err := os.MkdirAll(s.Run, 0o755); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	var l Lock
	if err := l.take(s.guardFile(), os.O_CREATE|os.O_RDWR, unix.LOCK_EX); err != nil {
		return nil, err
	}
	return &l, nil
}

// Guarded reports whether a guard lives.
func (s Scope) Guarded() (bool, error) {
	var l Lock
	err := l.take(s.guardFile(), os.O_RDONLY, unix.LOCK_SH|unix.LOCK_NB)
	switch {
	case errors.Is(err, ErrBusy):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	l.Unlock()
	return false, err
}
