package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Diagnostic is one finding in a policy file.
type Diagnostic struct {
	Span
	Message string    // one sentence, lower case, with the value in it
	Related []Related // other places that have a part in it; the first one is shown
	Help    string    // what to do about it; "" if the message says it
}

// A Related is another place of the same file, and what it has to do with it.
type Related struct {
	Span
	Note string
}

// Errors are all findings of one policy file in the order of their places.
type Errors []Diagnostic

// Error puts each finding on a line of its own, without the file's name and
// without excerpts: see Render for people.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, d := range e {
		lines[i] = d.Message
		if d.Line > 0 {
			lines[i] = fmt.Sprintf("%d:%d: %s", d.Line, d.Column, d.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// Sort orders the findings by place, those without a place first. Findings at
// one place keep their order.
func (e Errors) Sort() {
	slices.SortStableFunc(e, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
