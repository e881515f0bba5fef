package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrBusy says that another weir changes the same scope right now.
var ErrBusy = errors.New("another weir is changing this host")

// A Lock keeps others from changing a scope, or from reading it half changed.
type Lock struct{ f *os.File }

// LockForChange takes the scope for a change. It does not wait: two changes at
// once are a mistake that somebody should see. It returns ErrBusy.
func (s Scope) LockForChange() (*Lock, error) {
	if err := os.MkdirAll(s.Run, 0o755); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	f, err := os.OpenFile(s.lockFile(), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrBusy
		}
		return nil, fmt.Errorf("lock %s: %w", s.lockFile(), err)
	}
	return &Lock{f}, nil
}

// LockForReading waits until no change is under way. A scope that nothing was
// ever applied to needs no lock: Unlock of the nil Lock does nothing.
func (s Scope) LockForReading() (*Lock, error) {
	f, err := os.Open(s.lockFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", s.lockFile(), err)
	}
	return &Lock{f}, nil
}

// Unlock lets others in. The lock file stays: removing it would let two
// processes hold the lock on two files of one name.
func (l *Lock) Unlock() {
	if l != nil {
		l.f.Close()
	}
}
