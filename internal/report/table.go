package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A Style is how a terminal wants its text.
type Style struct {
	Width  int  // columns; below 40 is taken as 40
	Colour bool // ANSI colours; the words say the same without them
}

// minWidth is the narrowest terminal that the table is made for.
const minWidth = 40

// Table writes a result for a terminal. On narrow ones the less important
// columns go first: the number of samples, then the range, then the published
// figure. A ratio whose pairs lie on both sides of 1 is marked ~: no difference
// was shown.
func Table(w io.Writer, r Result, style Style) error {
	p := &printer{style: style}
	p.style.Width = max(style.Width, minWidth)
	p.heading(r)
	for _, metric := range r.metricNames() {
		p.grid(metricGrid(r, metric))
	}
	if len(r.Ratios) > 0 {
		p.grid(ratioGrid(r))
	}
	p.claims(r)
	for _, warning := range r.Warnings {
		p.hanging("warning", yellow, warning, "")
	}
	for _, source := range r.sources() {
		p.hanging("published", dim, source, "")
	}
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write table of lab %s: %w", r.Lab, err)
	}
	return nil
}

type printer struct {
	style Style
	b     strings.Builder
}

// The colours, by what they say.
const (
	bold   = "1"
	dim    = "2"
	red    = "1;31"
	green  = "32"
	yellow = "33"
)

func stateColour(state string) string {
	switch state {
	case "ok":
		return green
	case "BROKEN":
		return red
	}
	return yellow
}

func (p *printer) paint(code, s string) string {
	if !p.style.Colour || code == "" || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) heading(r Result) {
	text, state := r.headline()
	if state != "ok" {
		text = state + ": " + text
	}
	p.lines("", bold, r.title())
	p.lines("", stateColour(state), text)
	p.lines("", dim, strings.Join(r.facts(), ", "))
}

func (p *printer) claims(r Result) {
	if len(r.Claims) > 0 {
		p.b.WriteString("\n")
	}
	for _, c := range r.Claims {
		p.hanging(c.verdict(), stateColour(c.verdict()), c.Text, c.Evidence)
	}
}

// hanging writes a word and, to the right of it, a text and dimmed what
// supports it.
func (p *printer) hanging(word, code, text, support string) {
	const indent = "              " // as wide as "not provable" and a gap
	pad := indent[len(word):]
	for i, line := range fold(text, p.style.Width-len(indent)) {
		if i == 0 {
			p.b.WriteString(p.paint(code, word) + pad + line + "\n")
			continue
		}
		p.b.WriteString(indent + line + "\n")
	}
	p.lines(indent, dim, support)
}

func (p *printer) lines(indent, code, text string) {
	for _, line := range fold(text, p.style.Width-len(indent)) {
		p.b.WriteString(indent + p.paint(code, line) + "\n")
	}
}

// fold breaks a text into lines of at most width columns: at spaces, and inside
// a word only where it is longer than a line.
func fold(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		runes := []rune(word)
		for len(runes) > width {
			lines, runes = append(lines, string(runes[:width])), runes[width:]
		}
		line = string(runes)
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
