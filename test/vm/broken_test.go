package vm

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/testutil"
)

// TestBrokenPromise breaks one promise in the product, for one kernel: users are
// left out of the tables. Of the cells that the runs on two kernels fill, just
// this one is red.
func TestBrokenPromise(t *testing.T) {
	t.Parallel() // nothing is measured
	testutil.Needs(t, "root", "qemu-system-x86_64", "kernel 6.1", "kernel 6.12")
	events := t.TempDir()
	const tests = "^Test(EgressByUser|Tags|EgressByHeaders)$"
	if out, err := matrix(t, "6.1", tests, events, "GOFLAGS=-overlay="+withoutUsers(t)); err == nil {
		t.Errorf("make test-vm passes where a promise is broken:\n%s", out)
	}
	if out, err := matrix(t, "6.12", tests, events); err != nil {
		t.Errorf("6.12: %v\n%s", err, out)
	}
	data := filepath.Join(t.TempDir(), "kernels.json")
	out, err := exec.CommandContext(t.Context(), "go", "run", "../../internal/tools/kernels", "-data", data, events).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !bytes.Contains(out, []byte("is broken: [TestEgressByUser]")) {
		t.Errorf("kernels: %v\n%s", err, out)
	}
	var runs []struct {
		Name  string
		Cells map[string]struct{ State string }
	}
	text, err := os.ReadFile(data)
	if err == nil {
		err = json.Unmarshal(text, &runs)
	}
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]string{}
	for _, r := range runs {
		for promise, cell := range r.Cells {
			if cell.State != "not tested" {
				cells[r.Name+" "+promise] = cell.State
			}
		}
	}
	want := map[string]string{
		"6.1 local": "broken", "6.1 tag": "proven on a lower rung", "6.1 forwarded": "proven on a lower rung",
		"6.12 local": "proven", "6.12 tag": "proven", "6.12 forwarded": "proven",
	}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("cells (-want +got)\n%s", diff)
	}
}

// matrix runs tests of the kernel's programs on a kernel and keeps their events.
func matrix(t *testing.T, kernel, tests, events string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "./matrix")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Env = append(append(os.Environ(), "KERNELS="+kernel, "PKG=./internal/kernel/bpf", "RUN="+tests, "SHORT=yes", "TIMEOUT=300",
		"JSON="+events, "COUNTS=", "UNTIL="), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// withoutUsers makes an overlay for the go command: the product with one line
// less.
func withoutUsers(t *testing.T) string {
	t.Helper()
	const line = "		fill(g.tables[linkEgressMapUsers], widen(rules.Users)),\n"
	source, err := filepath.Abs("../../internal/kernel/bpf/rules.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(text, []byte(line)) != 1 {
		t.Fatalf("%s has no line %q to break any more", source, line)
	}
	dir := t.TempDir()
	broken, overlay := filepath.Join(dir, "rules.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(broken, bytes.Replace(text, []byte(line), nil, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {source: broken}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
