package state

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

func full() *Record {
	when := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	return &Record{
		Version: recordVersion, Generation: 7,
		Applied:  &Document{File: "a.yaml", Text: "version: 1\n", When: when},
		Previous: &Document{File: "b.yaml", Text: "version: 1\n", When: when},
		IDs:      plan.IDs{Names: map[string]plan.Contract{"ssh": {ID: 18, Serial: 1}}, Next: 2},
		Links:    map[string]LinkRecord{"eth0": {Index: 2, Filter: true, Saved: json.RawMessage(`{"x":1}`)}},
		Sets:     []Set{{Name: "pid 7", PID: 7, Start: 9, Priority: policy.Priority{Default: 4, PerLink: map[string]policy.Level{"eth0": 3}}}},
		Offload:  map[string]bool{"eth0": false},
		Pending:  &Pending{Deadline: when, Guard: 12},
		Rollback: &Rollback{When: when, Reason: "late", Proved: true},
	}
}

func TestRecordReadsAsWritten(t *testing.T) {
	s := Scope{Run: filepath.Join(t.TempDir(), "not", "there")}
	empty, err := s.Load()
	if err != nil || empty.Generation != 0 || empty.Links == nil || empty.Journal != nil {
		t.Fatalf("without a file: %+v, %v", empty, err)
	}
	want := full()
	if err := s.Save(want); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveJournal(&Journal{Verb: "apply", Step: 3, Steps: 9, Text: "attach"}); err != nil {
		t.Fatal(err)
	}
	want.Journal = &Journal{Verb: "apply", Step: 3, Steps: 9, Text: "attach"}
	got, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// The journal is a file of its own: saving the record does not keep it alive.
	if err := s.Save(got); err != nil {
		t.Fatal(err)
	}
	if err := s.EndJournal(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load(); err != nil || got.Journal != nil {
		t.Errorf("after its end: %+v, %v", got.Journal, err)
	}
	if err := s.Forget(); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(); err != nil {
		t.Errorf("forgetting twice: %v", err)
	}
	left, _ := os.ReadDir(s.Run)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRecordOfAnotherVersion(t *testing.T) {
	s := Scope{Run: t.TempDir()}
	r := full()
	r.Version++
	if err := s.Save(r); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); !errors.Is(err, ErrOtherVersion) {
		t.Errorf("got %v, want ErrOtherVersion", err)
	}
}

func TestDamagedRecord(t *testing.T) {
	s := Scope{Run: t.TempDir()}
	for _, file := range []string{s.recordFile(), s.journalFile()} {
		if err := os.WriteFile(file, []byte(`{"version":`), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
		os.Remove(file)
	}
}

// A write that is broken off leaves the old file, and what it left is swept up.
func TestHalfWritten(t *testing.T) {
	s := Scope{Run: t.TempDir()}
	if err := s.Save(full()); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(s.Run, strings.Replace(temporary, "*", "1", 1))
	if err := os.WriteFile(half, []byte(`{"vers`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load(); err != nil || got.Generation != 7 {
		t.Errorf("beside half a file: %+v, %v", got, err)
	}
	if err := s.Forget(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a file is left: %v", err)
	}
}
