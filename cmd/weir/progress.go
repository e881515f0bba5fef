package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A progress shows on a terminal what is being done: one line that is written
// over, or with ACCESSIBLE=1 a line each. In a pipe it is silent.
type progress struct {
	c      *cli
	on     bool
	static bool
}

func (c *cli) progress() *progress {
	return &progress{c: c, on: c.isTerminal(c.stderr), static: c.getenv("ACCESSIBLE") == "1" || c.getenv("TERM") == "dumb"}
}

// step shows the next thing.
func (p *progress) step(text string) {
	switch {
	case !p.on:
	case p.static:
		fmt.Fprintln(p.c.stderr, text)
	default:
		fmt.Fprintf(p.c.stderr, "\r\x1b[K%s", p.c.paint(p.c.stderr).dim(cut(text, p.c.columns(p.c.stderr)-1)))
	}
}

// end leaves the line as it was before the first step.
func (p *progress) end() {
	if p.on && !p.static {
		fmt.Fprint(p.c.stderr, "\r\x1b[K")
	}
}

// cut shortens a text to a width, and says that it did.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return strings.TrimRight(string([]rune(text)[:max(width-1, 0)]), " ") + "…"
}
