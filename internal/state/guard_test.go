package state

import "testing"

// A guard is known for as long as it lives, and by those who read too.
func TestGuarded(t *testing.T) {
	s := Scope{Run: t.TempDir() + "/run"}
	known := func(want bool) {
		t.Helper()
		if got, err := s.Guarded(); err != nil || got != want {
			t.Errorf("guarded: %v, %v, want %v", got, err, want)
		}
	}
	known(false)
	guard, err := s.LockAsGuard()
	if err != nil {
		t.Fatal(err)
	}
	known(true)
	next := make(chan *Lock)
	go func() {
		l, err := s.LockAsGuard()
		if err != nil {
			t.Error(err)
		}
		next <- l
	}()
	guard.Unlock()
	if guard = <-next; guard == nil {
		t.FailNow()
	}
	known(true)
	guard.Unlock()
	known(false)
}
