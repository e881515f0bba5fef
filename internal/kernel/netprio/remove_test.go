package netprio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestRemove(t *testing.T) {
	tree := newTree(t)
	apply(t, tree)
	mount := read(t, tree).Mount
	home := fmt.Sprintf("/weir-test-%d-left", os.Getpid())
	if err := os.Mkdir(mount+home, 0o755); err != nil {
		t.Fatal(err)
	}
	a, b := startSender(t, "127.0.0.1:9"), startSender(t, "127.0.0.1:9")
	if err := movePID(mount+home, b.pid()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*sender{a, b} {
		if err := tree.Assign(s.pid(), "prio-8"); err != nil {
			t.Fatal(err)
		}
	}
	// The place where b was goes away: it shall go to the next one above.
	if err := removeDir(mount + home); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := tree.Remove(); err != nil {
			t.Fatal(err)
		}
		if found, err := findMount(""); err != nil || found != "" {
			t.Errorf("net_prio is still mounted at %s, %v", found, err)
		}
		for _, path := range []string{mount, tree.memoryPath()} {
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there: %v", path, err)
			}
		}
	}
	for _, s := range []*sender{a, b} {
		if got := groupOf(t, s.pid()); got != "/" && got != "" {
			t.Errorf("process is in %s, want the root", got)
		}
	}
}

// Groups that others made by the recipe are used, get their maps back and stay,
// with the processes that others put there.
func TestRemoveLeavesForeignGroups(t *testing.T) {
	tree := newTree(t)
	apply(t, tree) // for the mount
	mount := read(t, tree).Mount
	second := Tree{Base: tree.Base + "/foreign", RunDir: t.TempDir()}
	dir := mount + second.group("prio-6")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(removeDir(dir), removeDir(mount+second.Base)) }()
	if err := os.WriteFile(dir+"/"+mapFile, []byte("lo 1"), 0); err != nil {
		t.Fatal(err)
	}
	before, err := readMap(dir)
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := startSender(t, "127.0.0.1:9"), startSender(t, "127.0.0.1:9")
	if err := movePID(dir, theirs.pid()); err != nil {
		t.Fatal(err)
	}

	apply(t, second)
	apply(t, second)
	if err := second.Assign(ours.pid(), "prio-6"); err != nil {
		t.Fatal(err)
	}
	if drift := read(t, second).Drift(); drift != nil {
		t.Errorf("drift %v", drift)
	}
	if err := second.Remove(); err != nil {
		t.Fatal(err)
	}
	after, err := readMap(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("map of the foreign group (-before +after):\n%s", diff)
	}
	if got := groupOf(t, theirs.pid()); got != second.group("prio-6") {
		t.Errorf("their process is in %s", got)
	}
	if got := groupOf(t, ours.pid()); got != "/" {
		t.Errorf("our process is in %s, want /", got)
	}
	if entries, err := os.ReadDir(mount + second.Base); err != nil || countDirs(entries) != 1 {
		t.Errorf("groups left: %v, %v; want prio-6 alone", entries, err)
	}
	theirs.end()
}

func countDirs(entries []fs.DirEntry) (n int) {
	for _, e := range entries {
		if e.IsDir() {
			n++
		}
	}
	return n
}

// Cut off between any two writes, Apply can be repeated and undone: its memory
// runs ahead of the kernel.
func TestRemoveAfterCutOffApply(t *testing.T) {
	tree := newTree(t)
	apply(t, tree)
	m, _, err := tree.load()
	if err != nil {
		t.Fatal(err)
	}
	m.Made = append(m.Made, tree.group("weir-planned"))
	if err := tree.save(m); err != nil {
		t.Fatal(err)
	}
	if err := removeDir(m.Mount + tree.group("prio-15")); err != nil {
		t.Fatal(err)
	}
	if err := tree.Remove(); err != nil {
		t.Fatal(err)
	}
	apply(t, tree)
	if drift := read(t, tree).Drift(); drift != nil {
		t.Errorf("drift %v", drift)
	}
}

// TestUnmountedByOthers: the hierarchy lives on with its groups, so Remove and
// Clear mount it again to put the processes back.
func TestUnmountedByOthers(t *testing.T) {
	tree := newTree(t)
	apply(t, tree)
	a, b := startSender(t, "127.0.0.1:9"), startSender(t, "127.0.0.1:9")
	for _, s := range []*sender{a, b} {
		if err := tree.Assign(s.pid(), "prio-8"); err != nil {
			t.Fatal(err)
		}
	}
	undo := map[*sender]func() error{
		a: func() error { return tree.Clear(a.pid()) },
		b: tree.Remove,
	}
	for _, s := range []*sender{a, b} {
		if err := unix.Unmount(read(t, tree).Mount, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		if got := groupOf(t, s.pid()); got != tree.group("prio-8") {
			t.Fatalf("process is in %q without the mount", got)
		}
		if err := undo[s](); err != nil {
			t.Fatal(err)
		}
		if got := groupOf(t, s.pid()); got != "/" && got != "" {
			t.Errorf("process is in %s, want the root", got)
		}
	}
	again := t.TempDir()
	if err := mountHierarchy(again); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(again + tree.Base); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the groups are still there: %v", err)
	}
	if err := unmount(again); err != nil {
		t.Fatal(err)
	}
}

// TestMountFails: what is remembered of an earlier Apply outlives a later one that
// can not mount the hierarchy.
func TestMountFails(t *testing.T) {
	tree := newTree(t)
	apply(t, tree)
	a := startSender(t, "127.0.0.1:9")
	if err := tree.Assign(a.pid(), "prio-8"); err != nil {
		t.Fatal(err)
	}
	mount := read(t, tree).Mount
	if err := errors.Join(unix.Unmount(mount, unix.MNT_DETACH), os.Remove(mount), os.WriteFile(mount, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := tree.Apply(nil); !errors.Is(err, unix.ENOTDIR) {
		t.Fatalf("apply where a file is in the way: %v", err)
	}
	if s := read(t, tree); s.Moved[a.pid()] != "prio-8" {
		t.Errorf("forgot what was moved: %v", s.Moved)
	}
	if err := os.Remove(mount); err != nil {
		t.Fatal(err)
	}
	if err := tree.Remove(); err != nil {
		t.Fatal(err)
	}
	if got := groupOf(t, a.pid()); got != "/" && got != "" {
		t.Errorf("process is in %s, want the root", got)
	}
}

// TestMountedElsewhere: a mount that others made in the place of ours is theirs,
// and where ours is one of two it is still ours.
func TestMountedElsewhere(t *testing.T) {
	for name, beside := range map[string]bool{"instead": false, "beside": true} {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t)
			apply(t, tree)
			ours, theirs := read(t, tree).Mount, t.TempDir()
			if err := mountHierarchy(theirs); err != nil {
				t.Fatal(err)
			}
			if !beside {
				if err := unix.Unmount(ours, unix.MNT_DETACH); err != nil {
					t.Fatal(err)
				}
			}
			apply(t, tree)
			if s := read(t, tree); s.Mounted != beside || s.Drift() != nil {
				t.Errorf("mounted at %s by us: %t, drift %v", s.Mount, s.Mounted, s.Drift())
			}
			if err := tree.Remove(); err != nil {
				t.Fatal(err)
			}
			if found, err := findMount(""); err != nil || found != theirs {
				t.Errorf("mounted at %q, %v, want %s", found, err, theirs)
			}
			if _, err := os.Stat(ours); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("our mount point is still there: %v", err)
			}
			if err := unmount(theirs); err != nil {
				t.Fatal(err)
			}
		})
	}
}
