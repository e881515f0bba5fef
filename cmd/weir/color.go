package main

import "io"

// A painter colours words, or leaves them as they are. No state is told by
// colour alone.
type painter struct{ on bool }

// paint is the painter for one of the outputs: what --color says goes over
// NO_COLOR, and that over what the output is.
func (c *cli) paint(w io.Writer) painter {
	switch c.color {
	case "always":
		return painter{true}
	case "never":
		return painter{false}
	}
	return painter{c.getenv("NO_COLOR") == "" && c.getenv("TERM") != "dumb" && c.isTerminal(w)}
}

func (p painter) red(s string) string    { return p.sgr("1;31", s) }
func (p painter) green(s string) string  { return p.sgr("32", s) }
func (p painter) yellow(s string) string { return p.sgr("1;33", s) }
func (p painter) cyan(s string) string   { return p.sgr("36", s) }
func (p painter) bold(s string) string   { return p.sgr("1", s) }
func (p painter) dim(s string) string    { return p.sgr("2", s) }

func (p painter) sgr(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
