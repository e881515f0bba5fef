package netprio

import (
	"context"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

func TestApply(t *testing.T) {
	tree := newTree(t)
	extra := map[string]policy.Priority{NamedGroup("backup"): {Default: 4, PerLink: map[string]policy.Level{"lo": 2}}}
	if err := tree.Apply(extra); err != nil {
		t.Fatal(err)
	}
	s := read(t, tree)
	if len(s.Groups) != policy.Levels+1 || s.Drift() != nil {
		t.Fatalf("%d groups with drift %v, want 17 without", len(s.Groups), s.Drift())
	}
	// The interfaces are those that the kernel lists elsewhere too.
	links, err := os.ReadDir("/sys/class/net")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Groups["prio-7"].Map) < len(links) {
		t.Errorf("map %v, want an entry for each of %d interfaces", s.Groups["prio-7"].Map, len(links))
	}
	for name, want := range map[string]uint32{"prio-0": 0, "prio-7": 7, "prio-15": 15, "weir-backup": 2} {
		if got := s.Groups[name].Map["lo"]; got != want {
			t.Errorf("%s has priority %d on lo, want %d", name, got, want)
		}
	}

	// A second apply writes nothing.
	before, err := os.Stat(s.Mount + tree.group("prio-3") + "/" + mapFile)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond)
	if err := tree.Apply(extra); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(s.Mount + tree.group("prio-3") + "/" + mapFile)
	if err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the second apply wrote a map: %v, %v", after, err)
	}
	if again := read(t, tree); !reflect.DeepEqual(again, s) {
		t.Errorf("second apply (-first +second):\n%s", cmp.Diff(s, again))
	}

	// Without the extra group it is removed.
	apply(t, tree)
	if s := read(t, tree); len(s.Groups) != policy.Levels {
		t.Errorf("%d groups, want 16", len(s.Groups))
	}
}

func TestDriftIsSeenAndMended(t *testing.T) {
	tree := newTree(t)
	apply(t, tree)
	s := read(t, tree)
	if err := os.WriteFile(s.Mount+tree.group("prio-9")+"/"+mapFile, []byte("lo 3"), 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Rmdir(s.Mount + tree.group("prio-2")); err != nil {
		t.Fatal(err)
	}
	want := []Drift{{Group: "prio-2", Missing: true}, {Group: "prio-9", Link: "lo", Want: 9, Got: 3}}
	if diff := cmp.Diff(want, read(t, tree).Drift()); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
	apply(t, tree)
	if drift := read(t, tree).Drift(); drift != nil {
		t.Errorf("drift after apply: %v", drift)
	}
}

func TestApplyRefuses(t *testing.T) {
	tree := newTree(t)
	for _, name := range []string{"", "x", "prio-3", "weir-", "weir-a/b", "../x"} {
		if err := tree.Apply(map[string]policy.Priority{name: {}}); err == nil {
			t.Errorf("the group name %q was accepted", name)
		}
	}
	testutil.Netns(t)
	if err := tree.Apply(nil); !errors.Is(err, ErrNetns) {
		t.Fatalf("apply in another network namespace: %v, want ErrNetns", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := tree.Watch(ctx, nil); !errors.Is(err, ErrNetns) {
		t.Errorf("watch in another network namespace: %v, want ErrNetns", err)
	}
	if _, err := os.Stat(tree.RunDir); err == nil {
		t.Error("a refused apply left something in the run directory")
	}
}
