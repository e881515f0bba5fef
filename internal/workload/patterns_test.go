package workload

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/policy"
)

// drawPattern makes patterns of all forms over few names, so that they hit.
func drawPattern(t *rapid.T) policy.Cgroup {
	names := rapid.SampledFrom([]string{"a", "b", "ab", "x.service", "a*", "*b", "?", "*", "a?*"})
	parts := rapid.SliceOfN(names, 0, 4).Draw(t, "parts")
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		return policy.Cgroup{Pattern: "/" + strings.Join(append(parts, "**"), "/")}
	case 1:
		return policy.Cgroup{Pattern: "/**/" + names.Draw(t, "unit")}
	}
	return policy.Cgroup{Pattern: "/" + strings.Join(parts, "/")}
}

// The trie must agree with the meaning that package policy gives a pattern.
func TestPatternsAgreeWithPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		patterns := distinct(rapid.SliceOfN(rapid.Custom(drawPattern), 1, 12).Draw(t, "patterns"))
		root := newPatternNode()
		for _, p := range patterns {
			root.add(p)
		}
		path := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "bb", "x.service"}), 1, 5).Draw(t, "path")
		at := root.start()
		for _, name := range path {
			if names, ok := at.names(); ok && !slices.Contains(names, name) {
				if got := at.step(name).matches(); len(got) > 0 {
					t.Fatalf("names() left out %q, which leads to %v", name, got)
				}
			}
			dead := at.dead()
			at = at.step(name)
			if dead && len(at.nodes)+len(at.below) > 0 {
				t.Fatalf("a dead state lives on at %q", name)
			}
		}
		got := at.matches()
		for _, p := range patterns {
			if want := p.Match("/" + strings.Join(path, "/")); want != slices.Contains(got, p) {
				t.Fatalf("pattern %s on %v: want %v", p.Pattern, path, want)
			}
		}
		if len(distinct(got)) != len(got) {
			t.Fatalf("matches are repeated: %v", got)
		}
	})
}

func TestPatternsOfRoot(t *testing.T) {
	root := newPatternNode()
	root.add(policy.Cgroup{Pattern: "/"})
	root.add(policy.Cgroup{Pattern: "/**"})
	if got := root.start().matches(); len(got) != 2 {
		t.Errorf("the root matches %v, want / and /**", got)
	}
}
