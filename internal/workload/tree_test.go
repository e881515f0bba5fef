package workload

import (
	"errors"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func waitFor(t *testing.T, ready func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !ready() {
		if time.Now().After(deadline) {
			t.Fatal("waited five seconds in vain")
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestProcessTree(t *testing.T) {
	// Three generations, that end when their input does. A shell gives its
	// background jobs another one, hence the third descriptor.
	c := start(t, exec.Command("sh", "-c", "exec 3<&0; (cat <&3 & exec cat <&3) & cat"))
	var tree []Process
	waitFor(t, func() bool {
		var err error
		if tree, err = ProcessTree(t.Context(), c.pid()); err != nil {
			t.Fatal(err)
		}
		cats := 0
		for _, p := range tree {
			if p.Name == "cat" {
				cats++
			}
		}
		return cats == 3
	})
	if tree[0].PID != c.pid() {
		t.Errorf("the tree begins with %d, want %d", tree[0].PID, c.pid())
	}
	for _, p := range tree[1:] {
		if !slices.ContainsFunc(tree, func(q Process) bool { return q.PID == p.Parent }) {
			t.Errorf("process %d is not the child of one in the tree", p.PID)
		}
	}
	if len(tree) != 4 {
		t.Errorf("%d processes, want a shell and three cats", len(tree))
	}
}

// Nobody escapes by forking while the tree is read: a chain in which each
// process starts the next and stays.
func TestProcessTreeOfForkingProcess(t *testing.T) {
	c := start(t, exec.Command("sh", "-c", `exec 3<&0; f() { if [ $1 = 0 ]; then exec cat <&3; fi; f $(($1-1)) & wait; }; f 20`))
	seen := map[uint32]bool{}
	for deadline := time.Now().Add(5 * time.Second); len(seen) < 21 && time.Now().Before(deadline); {
		tree, err := ProcessTree(t.Context(), c.pid())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range tree {
			seen[p.PID] = true
		}
	}
	tree, err := ProcessTree(t.Context(), c.pid())
	if err != nil || len(tree) != 21 {
		t.Fatalf("%d processes, %v; want a chain of 21", len(tree), err)
	}
	parents := map[uint32]bool{}
	for _, p := range tree {
		parents[p.Parent] = true
	}
	if len(parents) != len(tree) {
		t.Errorf("%d processes have %d parents, want a chain", len(tree), len(parents))
	}
}

// Who has exited is in no tree, whether somebody waited for it or not.
func TestProcessTreeOfTheDead(t *testing.T) {
	c := start(t, exec.Command("sh", "-c", "exec 3<&0; true & exec cat <&3"))
	waitFor(t, func() bool {
		all, err := Processes(t.Context())
		return err == nil && slices.ContainsFunc(all, func(p Process) bool { return p.Parent == c.pid() && p.Zombie })
	})
	tree, err := ProcessTree(t.Context(), c.pid())
	if err != nil || len(tree) != 1 {
		t.Errorf("%d processes, %v; want cat without the zombie", len(tree), err)
	}
	gone := start(t, exec.Command("true"))
	waitFor(t, func() bool {
		_, err := ProcessTree(t.Context(), gone.pid())
		return errors.Is(err, ErrGone) // a zombie, for nobody has waited for it
	})
	gone.end()
	if _, err := ProcessTree(t.Context(), gone.pid()); !errors.Is(err, ErrGone) {
		t.Errorf("error %v, want ErrGone", err)
	}
}
