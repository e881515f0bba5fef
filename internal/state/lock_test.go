package state

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLocks(t *testing.T) {
	s := Scope{Run: t.TempDir() + "/run"}
	r, err := s.LockForReading()
	if err != nil {
		t.Fatalf("read where nothing was ever applied: %v", err)
	}
	r.Unlock()

	l, err := s.LockForChange()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.LockForChange(); !errors.Is(err, ErrBusy) {
		t.Errorf("a second change gets %v, want ErrBusy", err)
	}
	read := make(chan error)
	go func() {
		r, err := s.LockForReading()
		if err == nil {
			defer r.Unlock()
		}
		read <- err
	}()
	select {
	case err := <-read:
		t.Fatalf("a reader came in during a change: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	l.Unlock()
	if err := <-read; err != nil {
		t.Fatal(err)
	}
}

// Readers share, and make a change wait, not fail.
func TestReadersShare(t *testing.T) {
	s := Scope{Run: t.TempDir()}
	l, err := s.LockForChange()
	if err != nil {
		t.Fatal(err)
	}
	l.Unlock()
	var readers []*Lock
	for range 2 {
		r, err := s.LockForReading()
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, r)
	}
	changed := make(chan error)
	go func() {
		l, err := s.LockForChange()
		if err == nil {
			l.Unlock()
		}
		changed <- err
	}()
	select {
	case err := <-changed:
		t.Fatalf("a change went on among readers: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	for _, r := range readers {
		r.Unlock()
	}
	if err := <-changed; err != nil {
		t.Errorf("a change after readers: %v", err)
	}
}

// Nobody but root can open a lock, and so take it.
func TestLocksAreRoots(t *testing.T) {
	s := Scope{Run: t.TempDir()}
	change, err1 := s.LockForChange()
	guard, err2 := s.LockAsGuard()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	defer change.Unlock()
	defer guard.Unlock()
	for _, path := range []string{s.lockFile(), s.gateFile(), s.guardFile()} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// Whoever starts a program has its descriptors twice for a moment: that keeps nobody out.
func TestUnlockWhileOpen(t *testing.T) {
	s := Scope{Run: t.TempDir()}
	l, err := s.LockForChange()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range l.files {
		twice, err := unix.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(twice)
	}
	l.Unlock()
	again, err := s.LockForChange()
	if err != nil {
		t.Fatalf("a change after another one: %v", err)
	}
	again.Unlock()
}
