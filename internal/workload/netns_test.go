package workload

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestNamespaces(t *testing.T) {
	testutil.Needs(t, "root")
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	ns := testutil.NewNamespace(t)
	other, err := os.Readlink(ns.Path())
	if err != nil {
		t.Fatal(err)
	}
	names := func() (all []string) {
		t.Helper()
		paths, err := Namespaces()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			if name, err := os.Readlink(p); err == nil {
				all = append(all, name)
			}
		}
		return all
	}
	if all := names(); !slices.Contains(all, own) {
		t.Errorf("%v is not among %v", own, all)
	}
	cmd := exec.Command(testutil.Tool(t, "sh"), "-c", "read -r x")
	if _, err = cmd.StdinPipe(); err != nil { // it waits until this is closed
		t.Fatal(err)
	}
	ns.Do(func() { err = cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	all := names()
	if !slices.Contains(all, other) {
		t.Errorf("%v of a process is not among %v", other, all)
	}
	if slices.Sort(all); len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("one is given twice: %v", all)
	}
}
