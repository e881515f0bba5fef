package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A table is rows of cells in columns. Where it is too wide the columns of the
// highest rank go first; those of rank 0 stay, and the widest text of them is
// cut at last.
type table struct {
	columns []column
	rows    [][]cell
}

type column struct {
	title string
	right bool // figures stand right
	rank  int
}

// A cell is a text and what colours it; nil leaves it as it is.
type cell struct {
	text   string
	colour func(string) string
}

func plainCells(texts ...string) []cell {
	cells := make([]cell, len(texts))
	for i, t := range texts {
		cells[i].text = t
	}
	return cells
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }

// render writes the table, each line after an indent. No rows are no lines.
func (t *table) render(b *strings.Builder, paint painter, indent string, width int) {
	if len(t.rows) == 0 {
		return
	}
	shown, widths := t.fit(width - len(indent))
	line := func(cells func(i int) cell) {
		var l strings.Builder
		l.WriteString(indent)
		blank := 0
		for n, i := range shown {
			c := cells(i)
			text := cut(c.text, widths[i])
			pad := widths[i] - utf8.RuneCountInString(text)
			if n > 0 {
				blank += 2
			}
			if t.columns[i].right {
				blank += pad
				pad = 0
			}
			if text == "" { // no spaces at the end of a line
				blank += pad
				continue
			}
			l.WriteString(strings.Repeat(" ", blank))
			if c.colour != nil {
				text = c.colour(text)
			}
			l.WriteString(text)
			blank = pad
		}
		b.WriteString(l.String() + "\n")
	}
	line(func(i int) cell { return cell{t.columns[i].title, paint.dim} })
	for _, row := range t.rows {
		line(func(i int) cell { return row[i] })
	}
}

// fit chooses the columns that have something to say and fit, and their widths.
func (t *table) fit(width int) (shown []int, widths []int) {
	widths = make([]int, len(t.columns))
	most := 0
	for i, c := range t.columns {
		said := 0
		for _, row := range t.rows {
			said = max(said, utf8.RuneCountInString(row[i].text))
		}
		most = max(most, c.rank)
		if said > 0 {
			shown = append(shown, i)
			widths[i] = max(said, utf8.RuneCountInString(c.title))
		}
	}
	total := func() int {
		sum := -2
		for _, i := range shown {
			sum += widths[i] + 2
		}
		return sum
	}
	for rank := most; rank > 0 && total() > width; rank-- {
		var kept []int
		for _, i := range shown {
			if t.columns[i].rank != rank {
				kept = append(kept, i)
			}
		}
		shown = kept
	}
	for over := total() - width; over > 0 && len(shown) > 0; over = total() - width {
		widest := shown[0]
		for _, i := range shown {
			if widths[i] > widths[widest] && !t.columns[i].right {
				widest = i
			}
		}
		if widths[widest] <= 4 {
			break
		}
		widths[widest] = max(4, widths[widest]-over)
	}
	return shown, widths
}

// fold breaks a text into lines at its spaces; a word that is longer than a
// line has one to itself.
func fold(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// hang writes a label and, to the right of it, a text over as many lines as it
// takes.
func hang(b *strings.Builder, label, text string, width int, colour func(string) string) {
	indent := utf8.RuneCountInString(label)
	for i, line := range fold(text, max(width-indent, 20)) {
		lead := strings.Repeat(" ", indent)
		if i == 0 {
			lead = label
		}
		if colour != nil {
			line = colour(line)
		}
		b.WriteString(lead + line + "\n")
	}
}

// count renders a number of things: 1 link, 2 links.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// grouped renders a number with its thousands apart: 1,204,511.
func grouped(n uint64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// percent renders a part of a whole: 7 %, 0.3 %.
func percent(p float64) string {
	if p > 0 && p < 0.95 {
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}

// amount renders bytes in three digits that count: 0 B, 812 B, 1.20 MiB.
func amount(bytes uint64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes), ""
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if value, unit = value/1024, u; value < 1023.5 {
			break
		}
	}
	digits := 2
	switch {
	case value >= 99.95:
		digits = 0
	case value >= 9.995:
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, value, unit)
}
