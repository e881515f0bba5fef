package state

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// full is a record in which every field says something.
func full() *Record {
	when := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	return &Record{
		Version: recordVersion, Generation: 7,
		Applied:  &Document{File: "a.yaml", Text: "version: 1\n", When: when},
		Previous: &Document{File: "b.yaml", Text: "version: 1\n", When: when},
		IDs:      plan.IDs{Names: map[string]plan.Contract{"ssh": {ID: 18, Serial: 1}}, Next: 2},
		Links:    map[string]LinkRecord{"eth0": {Index: 2, Filter: true, Saved: json.RawMessage(`{"x":1}`)}},
		Tagged:   map[uint32]string{7: "ssh"},
		Sets:     []Set{{Name: "pid 7", PID: 7, Start: 9, Priority: policy.Priority{Default: 4, PerLink: map[string]policy.Level{"eth0": 3}}, Max: 1e7, TCPMemory: policy.TCPMemory{Soft: 1 << 20, Max: 2 << 20}}},
		Waiting:  true,
		BPFFS:    true,
		Groups:   map[string]plan.Group{"web": {Default: 3}},
		Memcg:    map[string]plan.Memcg{"web": {Path: "/web", Max: 1 << 20}},
		Offload:  map[int]bool{2: false},
		Steered: map[string]SteerRecord{"eth0": {Index: 2, When: when, Whole: true, Steering: plan.Steering{
			CPU: 1, Queue: plan.NoQueue, Way: "RPS", Settings: []plan.Setting{{Kind: plan.SettingRPS, Number: 3, Was: "0-1", Shall: "1"}},
		}}},
		Watcher:  &Process{PID: 11, Start: 10},
		Pending:  &Pending{Deadline: when, Guard: 12},
		Rollback: &Rollback{When: when, Reason: "late", Proved: true},
		Journal:  &Journal{Verb: "apply", When: when, Step: 3, Steps: 9, Text: "attach"},
		Proof:    &Proof{When: when, Verb: "apply"},
	}
}

// What is saved is what is loaded, field by field, each file by itself.
func TestRecordReadsAsWritten(t *testing.T) {
	s := Scope{Run: filepath.Join(t.TempDir(), "not", "there")}
	empty, err := s.Load()
	if err != nil || empty.Generation != 0 || empty.Links == nil || empty.Journal != nil || empty.Proof != nil {
		t.Fatalf("without a file: %+v, %v", empty, err)
	}
	want := full()
	for i, v := 0, reflect.ValueOf(*want); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not tried here", v.Type().Field(i).Name)
		}
	}
	if err := errors.Join(s.Save(want), s.SaveJournal(want.Journal), s.SaveProof(*want.Proof)); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	// Saving the record does not keep its journal or its proof alive.
	if err := errors.Join(s.EndJournal(), s.DropProof(), s.Save(got)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load(); err != nil || got.Journal != nil || got.Proof != nil {
		t.Errorf("after their end: %+v, %+v, %v", got.Journal, got.Proof, err)
	}
	if err := errors.Join(s.EndJournal(), s.DropProof()); err != nil {
		t.Errorf("ending twice: %v", err)
	}
}

// A set of a record from before there were limits has none, and one without a
// limit reads as it was written then.
func TestSetWithoutLimit(t *testing.T) {
	const before = `{"name":"pid 7","pid":7,"start":9,"priority":{"Default":4,"PerLink":null}}`
	var s Set
	if err := json.Unmarshal([]byte(before), &s); err != nil {
		t.Fatal(err)
	}
	if c := s.Contract(); c.Limited() || c.Priority.Default != 4 {
		t.Errorf("read as %+v", c)
	}
	if after, err := json.Marshal(s); err != nil || string(after) != before {
		t.Errorf("written as %s, %v", after, err)
	}
}

// The limits of a set come back as they were given, each for its direction.
func TestSetWithLimits(t *testing.T) {
	given := Set{Name: "pid 7", PID: 7, Priority: policy.Priority{Default: policy.Unset}, Max: 1e6, MaxIngress: 2e6}
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	var s Set
	if err := json.Unmarshal(text, &s); err != nil || !reflect.DeepEqual(s, given) {
		t.Fatalf("%s is read as %+v, %v", text, s, err)
	}
	want := policy.Contract{
		Priority: policy.Priority{Default: policy.Unset},
		Egress:   policy.Egress{Limit: policy.Limit{Max: 1e6}}, Ingress: policy.Bandwidth{Limit: policy.Limit{Max: 2e6}},
	}
	if got := s.Contract(); !reflect.DeepEqual(got, want) {
		t.Errorf("promises %+v, want %+v", got, want)
	}
}

// A record that says nothing leaves no file, and one with any field set does.
func TestEmptyRecord(t *testing.T) {
	s := Scope{Run: t.TempDir()}
	saved := func(r *Record) bool {
		if err := s.Save(r); err != nil {
			t.Fatal(err)
		}
		left, _ := os.ReadDir(s.Run)
		return len(left) > 0
	}
	if !saved(full()) {
		t.Fatal("a full record is no file")
	}
	for range 2 {
		if saved(&Record{Version: recordVersion, Links: map[string]LinkRecord{}}) {
			t.Error("an empty record is a file")
		}
	}
	all := reflect.ValueOf(*full())
	for i := range all.NumField() {
		field := all.Type().Field(i)
		if field.Tag.Get("json") == "-" || field.Name == "Version" {
			continue
		}
		r := &Record{Version: recordVersion}
		reflect.ValueOf(r).Elem().Field(i).Set(all.Field(i))
		if !saved(r) {
			t.Errorf("a record with %s is no file", field.Name)
		}
	}
}

// A record of another version is known by its number, also where its form can
// not be read.
func TestRecordOfAnotherVersion(t *testing.T) {
	s := Scope{Run: t.TempDir()}
	for _, text := range []string{`{"version": 2, "generation": 3}`, `{"generation": "three", "links": [], "version": 2}`} {
		if err := os.WriteFile(s.recordFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(); !errors.Is(err, ErrOtherVersion) {
			t.Errorf("%s: got %v, want ErrOtherVersion", text, err)
		}
	}
}

func TestDamagedRecord(t *testing.T) {
	s := Scope{Run: t.TempDir()}
	for _, file := range []string{s.recordFile(), s.journalFile(), s.proofFile()} {
		if err := os.WriteFile(file, []byte(`{"version":`), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
		os.Remove(file)
	}
}

// A write that is broken off leaves the old file, and the next one sweeps up.
func TestHalfWritten(t *testing.T) {
	s := Scope{Run: t.TempDir()}
	if err := s.Save(full()); err != nil {
		t.Fatal(err)
	}
	for _, next := range []*Record{full(), {Version: recordVersion}} {
		half := s.recordFile() + unfinished
		if err := os.WriteFile(half, []byte(`{"vers`), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Load(); err != nil || got.Generation != 7 {
			t.Errorf("beside half a file: %+v, %v", got, err)
		}
		if err := s.Save(next); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("half a file is left: %v", err)
		}
	}
}
