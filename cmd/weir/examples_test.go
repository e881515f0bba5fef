package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// Every example applies on a host that has its links: what it names of users and
// files is on any Debian, or is skipped by name.
func TestExamplesApply(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2", "htb qdisc")
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), filepath.Base(file))
			text = onThisHost(t, text)
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
			p, err := policy.Parse(file, text)
			if err != nil {
				t.Fatal(err)
			}
			var links []string
			for _, l := range p.Links {
				links = append(links, l.Name)
			}
			h := newHost(t, links...)
			for _, w := range p.Workloads {
				if w.Via == policy.ViaNetPrio {
					testutil.Needs(t, "net_prio")
				}
			}
			code, out := h.weir(t, "apply", file)
			if code != 0 || !strings.Contains(string(out), "\nkept: ") {
				t.Fatalf("apply: exit code %d\n%s", code, out)
			}
			if code, out := h.weir(t, "apply", file); code != 0 || !strings.HasPrefix(string(out), "No changes.\n") {
				t.Errorf("a second apply: exit code %d\n%s", code, out)
			}
			if code, out := h.weir(t, "status"); code != 0 {
				t.Errorf("status: exit code %d\n%s", code, out)
			}
			if code, out := h.weir(t, "reset"); code != 0 {
				t.Errorf("reset: exit code %d\n%s", code, out)
			}
		})
	}
}

// onThisHost puts in what no example can know: the number of a process that
// runs, and a rate where no scheduler of this kernel does without.
func onThisHost(t *testing.T, text []byte) []byte {
	t.Helper()
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait()
	})
	text = bytes.ReplaceAll(text, []byte("pid: 730"), fmt.Appendf(nil, "pid: %d", sleep.Process.Pid))
	if has, err := feature.Has("prio qdisc"); err == nil && !has {
		text = bytes.ReplaceAll(text, []byte("eth0: # nothing but defaults"), []byte("eth0: {rate: 1Gbit}"))
	}
	return text
}
