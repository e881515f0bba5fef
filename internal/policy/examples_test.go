package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func exampleFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %d examples: %v", len(files), err)
	}
	return files
}

type snippet struct {
	line int
	text string
}

// docSnippets are the yaml blocks of docs/policy.md; each is a whole policy.
func docSnippets(t *testing.T) (snippets []snippet) {
	t.Helper()
	text, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "```yaml":
			inside = true
			snippets = append(snippets, snippet{line: i + 2})
		case line == "```":
			inside = false
		case inside:
			snippets[len(snippets)-1].text += line + "\n"
		}
	}
	if len(snippets) < 4 {
		t.Fatalf("found %d snippets", len(snippets))
	}
	return snippets
}

func TestExamplesParse(t *testing.T) {
	parse := func(name, text string) *Policy {
		p, err := Parse(name, []byte(text))
		var errs Errors
		if errors.As(err, &errs) {
			t.Errorf("%s", errs.Render(name, []byte(text), false))
		}
		return p
	}
	for _, file := range exampleFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := parse(filepath.Base(file), string(text))
		if p != nil && (len(p.Workloads) == 0 || p.File != filepath.Base(file)) {
			t.Errorf("%s: %d workloads", p.File, len(p.Workloads))
		}
	}
	for _, s := range docSnippets(t) {
		parse("docs/policy.md", strings.Repeat("\n", s.line-1)+s.text)
	}
}

// The reference has every key, so that a new key without an example is noticed.
func TestReferenceHasEveryKey(t *testing.T) {
	text, err := os.ReadFile("../../examples/reference.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range [][]string{policyKeys[:], linkKeys[:], workloadKeys[:], contractKeys, egressKeys[:], limitKeys, tcpMemoryKeys[:], selectorKeys[:]} {
		for _, key := range keys {
			if !strings.Contains(string(text), key+":") {
				t.Errorf("examples/reference.yaml lacks %s", key)
			}
		}
	}
}
