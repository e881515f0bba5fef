package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/report"
	"github.com/weir-net/weir/internal/testutil"
)

// A lab prints its result alone with --json, and its page, kept data and a page
// made of these are one.
func TestLabRun(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2", "htb qdisc")
	dir := t.TempDir()
	page, kept, again := filepath.Join(dir, "page.html"), filepath.Join(dir, "kept.json"), filepath.Join(dir, "again.html")
	cmd := weir(t, "lab", "run", "ssh", "--repetitions", "1", "--rate", "50Mbit", "--json", "--output", page, "--keep", kept)
	out, err := cmd.Output()
	var r report.Result
	if bad := json.Unmarshal(out, &r); bad != nil {
		t.Fatalf("%v, %v\n%s", err, bad, out)
	}
	fits(t, "lab", out)
	want := exitDone
	if broken(r) {
		want = exitBroken
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Errorf("exit code %d, want %d for %+v", code, want, r.Claims)
	}
	if r.Environment == nil || r.Environment.Command != "weir lab run ssh --rate 50Mbit --repetitions 1" {
		t.Errorf("the result does not say how it is repeated: %+v", r.Environment)
	}
	if err := weir(t, "lab", "page", kept, "-o", again).Run(); err != nil {
		t.Fatal(err)
	}
	first, _ := os.ReadFile(page)
	second, _ := os.ReadFile(again)
	if len(first) == 0 || !bytes.Equal(first, second) {
		t.Errorf("the page has %d bytes, made again %d", len(first), len(second))
	}
}

// A lab that is interrupted leaves nothing behind.
func TestInterruptedLab(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2", "htb qdisc")
	interruptible(t)
	cmd := weir(t, "lab", "run", "ssh")
	cmd.Dir = t.TempDir()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || stderr.Len() > 0 {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	// The suite's own check looks for cgroups, pins and namespaces.
	if left, _ := filepath.Glob(filepath.Join(cmd.Dir, "*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

func TestBroken(t *testing.T) {
	for want, claims := range map[bool][]report.Claim{
		true:  {report.Kept("a", true, ""), report.Kept("b", false, "")},
		false: {report.Kept("a", true, ""), report.Unproven("b", "")},
	} {
		if got := broken(report.Result{Claims: claims}); got != want {
			t.Errorf("%+v: %v", claims, got)
		}
	}
}
