package policy

import (
	"fmt"
	"strings"
	"unicode"
)

// Render writes the findings for people, each with its line of the source:
//
//	policy.yaml:9:12-18: error: …
//	   9 |     priority: 16
//	     |               ^^
//	  help: …
//	1 error
//
// Columns count characters, both ends included. file is the name to show, src
// the text that was given to Parse.
func (e Errors) Render(file string, src []byte, color bool) string {
	r := renderer{file: file, source: newSource(src), gutter: 4, color: color}
	for _, d := range e {
		r.gutter = max(r.gutter, len(fmt.Sprint(d.Line)))
	}
	for _, d := range e {
		r.diagnostic(d)
	}
	if len(e) == 1 {
		r.WriteString("1 error\n")
	} else {
		fmt.Fprintf(&r, "%d errors\n", len(e))
	}
	return r.String()
}

type renderer struct {
	strings.Builder
	file   string
	source source
	gutter int
	color  bool
}

// The few SGR codes in use; 0 resets.
const (
	bold    = "1"
	red     = "1;31"
	blue    = "1;34"
	cyan    = "1;36"
	noColor = ""
)

func (r *renderer) paint(code, text string) string {
	if !r.color || code == noColor || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (r *renderer) diagnostic(d Diagnostic) {
	fmt.Fprintf(r, "%s: %s %s\n", r.paint(bold, r.place(d.Span, true)), r.paint(red, "error:"), r.paint(bold, oneLine(d.Message)))
	r.excerpt(d.Span, "^", red, "")
	if len(d.Related) > 0 {
		related := d.Related[0]
		note := oneLine(related.Note)
		if more := len(d.Related) - 1; more > 0 {
			note += fmt.Sprintf(" (and %d more)", more)
		}
		fmt.Fprintf(r, "  %s\n", r.place(related.Span, false))
		r.excerpt(related.Span, "~", blue, note)
	}
	if d.Help != "" {
		fmt.Fprintf(r, "  %s %s\n", r.paint(cyan, "help:"), oneLine(d.Help))
	}
}

// place is file:line:column, with the last column if asked for.
func (r *renderer) place(s Span, end bool) string {
	if s.Line == 0 {
		return r.file
	}
	place := fmt.Sprintf("%s:%d:%d", r.file, s.Line, s.Column)
	if last := r.lastColumn(s); end && last > s.Column {
		place += fmt.Sprintf("-%d", last)
	}
	return place
}

// lastColumn is the last column of a span on its first line.
func (r *renderer) lastColumn(s Span) int {
	if s.EndLine > s.Line {
		return r.source.width(s.Line)
	}
	return max(s.EndColumn-1, s.Column)
}

// excerpt shows the first line of a span and marks the span below it.
func (r *renderer) excerpt(s Span, mark, code, note string) {
	if s.Line == 0 || s.Line > len(r.source.lines) {
		return
	}
	text, before, marked := r.source.layout(s.Line, s.Column-1, r.lastColumn(s))
	if note != "" {
		note = " " + note
	}
	fmt.Fprintf(r, "%*d |%s\n", r.gutter, s.Line, prefixed(text))
	fmt.Fprintf(r, "%*s |%s%s\n", r.gutter, "", strings.Repeat(" ", before+1), r.paint(code, strings.Repeat(mark, marked)+note))
}

// prefixed keeps empty lines free of trailing space.
func prefixed(text string) string {
	if text == "" {
		return ""
	}
	return " " + text
}

// layout makes a line fit for a terminal: tabs become four spaces, what has no
// width of its own becomes visible, and a long line is clipped around the span
// [from, to) of its characters. It returns the text, the number of cells before
// the span and the number of cells in it.
func (s source) layout(n, from, to int) (text string, before, marked int) {
	const most = 96 // characters of a line that are shown
	width := s.width(n)
	from = min(max(from, 0), width)
	to = min(max(to, from), width)
	start, end := 0, width
	if width > most {
		start = max(0, min(from-most/3, width-most))
		end = start + most
		to = min(to, end)
	}
	line := s.line(n)[s.offset(n, start+1):s.offset(n, end+1)]
	var b strings.Builder
	put := func(i int, r rune, cells int) {
		b.WriteRune(r)
		if i < from {
			before += cells
		} else if i < to {
			marked += cells
		}
	}
	if start > 0 {
		put(start-1, '…', 1)
	}
	i := start - 1
	for _, r := range line {
		i++
		switch {
		case r == '\t':
			for range 4 {
				put(i, ' ', 1)
			}
		case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
			put(i, r, 0)
		case !unicode.IsPrint(r):
			put(i, '\ufffd', 1)
		default:
			put(i, r, cells(r))
		}
	}
	if end < width {
		b.WriteRune('…')
	}
	return strings.TrimRight(b.String(), " "), before, max(marked, 1)
}

// cells is how many cells of a terminal a printable character takes: the wide
// and fullwidth ranges of Unicode's East Asian Width, in blocks.
func cells(r rune) int {
	switch {
	case r < 0x1100:
		return 1
	case r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// oneLine keeps a text of ours from breaking the form, whatever is in it.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}
