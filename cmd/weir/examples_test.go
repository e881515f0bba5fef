package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// Every example applies on a host that has its links.
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
			for _, v := range p.VRFs {
				links = append(links, v.LinkNames()...)
			}
			h := newHost(t, links...)
			for _, w := range p.Workloads {
				if w.Via == policy.ViaNetPrio {
					testutil.Needs(t, "net_prio")
				}
				for _, m := range w.Match {
					if m.Kind == policy.KindCgroup && m.Cgroup.Controller != "" {
						testutil.Needs(t, "v1 "+m.Cgroup.Controller)
					}
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
// runs, users and a program that are here, and a rate where no scheduler of this
// kernel does without. VRFs are left out where the kernel has none.
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
	put := func(old, format string, args ...any) {
		text = bytes.ReplaceAll(text, []byte(old), fmt.Appendf(nil, format, args...))
	}
	if has, err := feature.Has("vrf link"); err == nil && !has {
		text = regexp.MustCompile(`(?m)^vrfs:(\n?.)+\n|^ +vrf: .*\n`).ReplaceAll(text, nil)
	}
	put("pid: 730", "pid: %d", sleep.Process.Pid)
	for name, id := range map[string]int{"www-data": 33, "backup": 34} {
		if _, err := user.Lookup(name); err != nil {
			put("user: "+name, "user: %d", id)
		}
	}
	const program = "/usr/lib/apt/methods/http"
	if _, err := os.Stat(program); err != nil {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		put("exe: "+program, "exe: %s", self)
	}
	if has, err := feature.Has("prio qdisc"); err == nil && !has {
		put("eth0: # nothing but defaults", "eth0: {rate: 1Gbit}")
	}
	return text
}
