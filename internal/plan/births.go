package plan

import (
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// The kernel side compares this much of a path and of a name.
const (
	longestPath = 249
	longestName = 127
)

// A birthKind says how the kernel recognises a new cgroup.
type birthKind int

const (
	birthNone   birthKind = iota // a wildcard in the middle: only a walk finds it
	birthPath                    // the whole path
	birthPrefix                  // a prefix that reaches into the last component
	birthName                    // the last component
)

// subtree splits "/batch/**" into the cgroup at its top and whether there is more
// to it. All below the top is found through it: the nearest ancestor counts.
func subtree(pattern string) (top string, deep bool) {
	top, deep = strings.CutSuffix(pattern, "/**")
	if top == "" {
		top = "/"
	}
	return top, deep
}

// birth returns how new cgroups are held against a pattern, and the literal
// text to compare. For birthNone that is what stands before the first wildcard.
func birth(pattern string) (birthKind, string) {
	pattern, _ = subtree(pattern)
	if name, ok := strings.CutPrefix(pattern, "/**/"); ok && !strings.ContainsAny(name, "*?/") {
		return birthName, name
	}
	i := strings.IndexAny(pattern, "*?")
	switch {
	case i < 0:
		return birthPath, pattern
	case pattern[i] == '*' && i == len(pattern)-1:
		return birthPrefix, pattern[:i]
	}
	return birthNone, pattern[:i]
}

// Followed reports whether cgroups that match the pattern and are born later
// are claimed by the kernel itself. The others wait for the next apply.
func Followed(c policy.Cgroup) bool {
	kind, literal := birth(c.Pattern)
	if len(literal) > longestPath || kind == birthName && len(literal) > longestName {
		return false
	}
	return kind != birthNone && (c.Controller == "" || kind != birthName)
}

// expect files a pattern under the way in which the kernel recognises it.
func (c cgroupClaims) expect(pattern policy.Cgroup, id ContractID) {
	if !Followed(pattern) {
		return
	}
	hierarchy := ""
	if pattern.Controller != "" {
		hierarchy = "1"
	}
	kind, literal := birth(pattern.Pattern)
	r := rank(pattern)
	switch kind {
	case birthPath:
		c.paths.add(hierarchy+literal, r, id)
	case birthName:
		c.names.add(literal, r, id)
	case birthPrefix:
		c.prefixes.add(hierarchy+literal, r, id)
	}
}
