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
		parent := slices.IndexFunc(tree, func(q Process) bool { return q.PID == p.Parent })
		if parent < 0 || !slices.Contains(tree[parent].Children, p.PID) {
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
	for _, p := range tree {
		if len(p.Children) > 1 {
			t.Errorf("process %d has children %v, want a chain", p.PID, p.Children)
		}
	}
}

func TestProcessTreeOfNobody(t *testing.T) {
	c := start(t, exec.Command("true"))
	_ = c.cmd.Wait()
	if _, err := ProcessTree(t.Context(), c.pid()); !errors.Is(err, ErrGone) {
		t.Errorf("error %v, want ErrGone", err)
	}
}
