package traffic

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

func TestTurns(t *testing.T) {
	if got, want := (Turns{Rounds: 3}).order(3), []int{0, 1, 2, 2, 1, 0, 0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestTalks lets two connections of a worker talk, each made in a cgroup of its own.
func TestTalks(t *testing.T) {
	ns, cgroup := testutil.NewNamespace(t), testutil.Cgroup2(t)
	first, second := filepath.Join(cgroup, "first"), filepath.Join(cgroup, "second")
	for _, dir := range []string{first, second} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { eventually(t, "nobody is in it", func() bool { return unix.Rmdir(dir) == nil }) })
	}
	w, err := StartWorker(ns.Path(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, dir := range []string{first, second} {
		if err := errors.Join(w.Move(t.Context(), dir), w.Talk(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	if procs, err := os.ReadFile(filepath.Join(second, "cgroup.procs")); err != nil || len(strings.Fields(string(procs))) != 1 {
		t.Errorf("it has not moved: %q, %v", procs, err)
	}
	turns := Turns{Rounds: 4, Slice: 5 * time.Millisecond}
	for range 2 {
		spoken, err := w.Speak(t.Context(), turns)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(spoken)
		if len(spoken) != 2 {
			t.Fatalf("%v", spoken)
		}
		for _, s := range spoken {
			if s.N < 100 || s.Elapsed < 4*turns.Slice || s.Rate() < 100 || len(s.Rates) != 4 || slices.Min(s.Rates) > s.Rate() || slices.Max(s.Rates) < s.Rate() {
				t.Errorf("%+v", s)
			}
		}
	}
	if err := w.HangUp(t.Context()); err != nil {
		t.Error(err)
	}
	if spoken, err := w.Speak(t.Context(), turns); err != nil || len(spoken) != 0 {
		t.Errorf("nobody is left, and %v, %v", spoken, err)
	}
	if err := w.Move(t.Context(), filepath.Join(cgroup, "none")); err == nil {
		t.Error("it moved into a cgroup that is not there")
	}
}

// TestBrokenTalk: where a connection ends in the middle, both sides learn of it.
func TestBrokenTalk(t *testing.T) {
	talk, err := OpenTalk()
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	if err := unix.Shutdown(talk.server, unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	if _, err := Speak([]*Talk{talk}, Turns{Rounds: 1, Slice: time.Millisecond}); err == nil {
		t.Error("nothing is wrong")
	}
}
