package state

import (
	"os"
	"testing"
)

// A look sees every writing, and reads nothing where there was none.
func TestLook(t *testing.T) {
	s := Scope{Run: t.TempDir()}
	l := Look{Scope: s}
	look := func(want uint32) *Record {
		t.Helper()
		r, err := l.Record()
		if err != nil || r.Generation != want {
			t.Fatalf("got %+v, %v, want generation %d", r, err, want)
		}
		return r
	}
	none := look(0)
	if look(0) != none {
		t.Error("no record was read again")
	}
	for n := uint32(1); n < 20; n++ {
		if err := s.Save(&Record{Version: recordVersion, Generation: n}); err != nil {
			t.Fatal(err)
		}
		first := look(n)
		if look(n) != first {
			t.Error("a record was read again that nobody wrote")
		}
	}
	if err := s.Save(&Record{Version: recordVersion}); err != nil {
		t.Fatal(err)
	}
	look(0)
	if err := os.WriteFile(s.recordFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := l.Record(); err == nil {
		t.Errorf("a damaged record: %+v", r)
	}
}
