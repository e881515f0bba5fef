package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// The README's way from nothing to a prioritised ssh is walked here, and what
// the README shows is what weir prints.
func TestReadme(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2", "htb qdisc")
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "cat > policy.yaml <<'EOF'\n")
	if !ok {
		t.Fatal("the README writes no policy.yaml")
	}
	example, rest, _ := strings.Cut(rest, "EOF\n")
	command, rest, _ := strings.Cut(rest, "\n```\n")
	if command != "sudo weir apply --confirm 90s policy.yaml && sudo weir confirm" {
		t.Fatalf("the README goes on with %q", command)
	}
	blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(rest, -1)
	if len(blocks) < 2 {
		t.Fatal("the README does not show what apply and status print")
	}

	h := newHost(t, "eth0")
	dir, err := os.MkdirTemp("/tmp", "") // short: status folds lines of more than 80 columns
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "policy.yaml")
	// The kernel at hand may have a better rung, or no tcx: the README shows htb
	// and tcx.
	example = strings.Replace(example, "{rate: 95Mbit}", "{rate: 95Mbit, scheduler: htb}", 1)
	if err := os.WriteFile(file, []byte(example), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out := h.weir(t, "apply", "--confirm", "90s", file)
	if code != 0 {
		t.Fatalf("apply: exit code %d\n%s", code, out)
	}
	shows(t, "apply", blocks[0][1], string(out))
	if code, out := h.weir(t, "confirm"); code != 0 {
		t.Fatalf("confirm: exit code %d\n%s", code, out)
	}
	code, out = h.weir(t, "status")
	if code != 0 {
		t.Fatalf("status: exit code %d\n%s", code, out)
	}
	hook := "by tcx"
	if has, _ := feature.Has("tcx"); !has {
		hook = "by cls_bpf"
	}
	shows(t, "status", strings.Replace(blocks[1][1], "by tcx", hook, 1), string(out))
	if code, out := h.weir(t, "reset"); code != 0 {
		t.Fatalf("reset: exit code %d\n%s", code, out)
	}
}

// shows finds every line of a block in what was printed, in order; numbers, times
// and paths are of the moment, and … stands for lines that are left out.
func shows(t *testing.T, what, block, printed string) {
	t.Helper()
	plain := func(s string) string {
		s = regexp.MustCompile(`\S*policy\.yaml`).ReplaceAllString(s, "policy.yaml")
		s = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`).ReplaceAllString(s, "N")
		return strings.Join(strings.Fields(s), " ")
	}
	lines := strings.Split(printed, "\n")
	for line := range strings.Lines(block) {
		want := plain(line)
		if want == "…" || want == "" {
			continue
		}
		i := slices.IndexFunc(lines, func(l string) bool { return plain(l) == want })
		if i < 0 {
			t.Fatalf("%s does not print, or not there, what the README shows:\n%sbut\n%s", what, line, printed)
		}
		lines = lines[i+1:]
	}
}

// Every policy and every command in the README is one that weir takes.
func TestReadmeIsValid(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?s)<<'EOF'\n(.*?)EOF\n`).FindAllStringSubmatch(string(text), -1) {
		if _, err := policy.Parse("README.md", []byte(m[1])); err != nil {
			t.Errorf("%v in\n%s", err, m[1])
		}
	}
	c := &cli{env: system()}
	root := c.root()
	for _, m := range regexp.MustCompile(`(?m)^(?:sudo )?weir ([a-z]+)`).FindAllStringSubmatch(string(text), -1) {
		if found, _, err := root.Find([]string{m[1]}); err != nil || found == root {
			t.Errorf("weir %s is no command", m[1])
		}
	}
}
