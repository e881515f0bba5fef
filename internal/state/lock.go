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

// A Lock is what a process holds of a scope until it unlocks or ends. Its files
// are root's alone: whoever can open a file can lock it, and so keep us waiting.
type Lock struct{ files []*os.File }

// LockForChange takes the scope for a change. It waits for those who read, and
// not for another change: two at once are a mistake that somebody should see. It
// returns ErrBusy.
//
// There are two files, so that one who reads makes one who changes wait a moment
// and never fail: the lock is held by who changes, the gate by who changes and by
// all who read.
func (s Scope) LockForChange() (*Lock, error) {
	if err := os.MkdirAll(s.Run, 0o755); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	var l Lock
	err := l.take(s.lockFile(), os.O_CREATE|os.O_RDWR, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = l.take(s.gateFile(), os.O_CREATE|os.O_RDWR, unix.LOCK_EX)
	}
	if err != nil {
		l.Unlock()
		return nil, err
	}
	return &l, nil
}

// LockForReading waits until no change is under way. A scope that nothing was
// ever applied to needs no lock.
func (s Scope) LockForReading() (*Lock, error) {
	var l Lock
	err := l.take(s.gateFile(), os.O_RDONLY, unix.LOCK_SH)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &l, nil
}

// take opens a file and locks it for as long as it is open.
func (l *Lock) take(path string, open, how int) error {
	f, err := os.OpenFile(path, open, 0o600)
	if err != nil {
		return fmt.Errorf("open lock: %w", err)
	}
	for {
		if err = unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return ErrBusy
		}
		return fmt.Errorf("lock %s: %w", path, err)
	}
	l.files = append(l.files, f)
	return nil
}

// Unlock lets others in. The files stay: removing one would let two processes
// hold the lock on two files of one name. Closing them would not do: a program that
// is being started at this moment still has them, until it runs.
func (l *Lock) Unlock() {
	for i := len(l.files) - 1; i >= 0; i-- {
		_ = unix.Flock(int(l.files[i].Fd()), unix.LOCK_UN)
		l.files[i].Close()
	}
}
