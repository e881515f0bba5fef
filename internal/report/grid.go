package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A column of a grid. The first one of a grid holds the names.
type column struct {
	title string
	rank  int // the columns of the highest rank are dropped first, rank 0 stays
	cells []string
}

// The ranks of what may be dropped on a narrow terminal.
const (
	always = iota
	ifPublished
	ifRange
	ifCount
)

func metricGrid(r Result, metric string) []column {
	names, medians := column{title: r.label(metric)}, column{title: "median"}
	spans, counts := column{title: "min … max", rank: ifRange}, column{title: "n", rank: ifCount}
	published := column{title: "published", rank: ifPublished}
	for _, arm := range r.Arms {
		m, ok := arm.Metrics[metric]
		if !ok {
			continue
		}
		median := "not measured"
		if m.N > 0 {
			median = quantity(m.Median, m.Unit)
		}
		figure := ""
		if f, ok := r.published(arm.Name, metric); ok {
			figure = quantity(f.Value, f.Unit)
		}
		names.cells = append(names.cells, "  "+plain(arm.Name))
		medians.cells = append(medians.cells, median)
		spans.cells = append(spans.cells, span(m))
		counts.cells = append(counts.cells, fmt.Sprint(m.N))
		published.cells = append(published.cells, figure)
	}
	return []column{names, medians, spans, counts, published}
}

func ratioGrid(r Result) []column {
	names, medians := column{title: "ratio"}, column{title: "median"}
	spans, published := column{title: "min … max", rank: ifRange}, column{title: "published", rank: ifPublished}
	for _, name := range r.ratioNames() {
		ratio := r.Ratios[name]
		median, figure := quotient(ratio.Value), ""
		if !ratio.Differs() {
			median = "~ " + median
		}
		if f, ok := r.publishedRatio(name); ok {
			figure = quotient(f.Value)
		}
		names.cells = append(names.cells, "  "+r.label(name))
		medians.cells = append(medians.cells, median)
		spans.cells = append(spans.cells, quotient(ratio.Low)+" … "+quotient(ratio.High))
		published.cells = append(published.cells, figure)
	}
	return []column{names, medians, spans, published}
}

func (c column) width() int {
	w := utf8.RuneCountInString(c.title)
	for _, cell := range c.cells {
		w = max(w, utf8.RuneCountInString(cell))
	}
	return w
}

func (c column) empty() bool {
	return !slices.ContainsFunc(c.cells, func(s string) bool { return s != "" })
}

const gap = 2 // between columns

func width(columns []column) int {
	sum := -gap
	for _, c := range columns {
		sum += c.width() + gap
	}
	return sum
}

// fit drops the columns that are empty or too much for a width. What is still
// too wide then is the names: they are cut, never the figures.
func fit(columns []column, limit int) []column {
	kept := slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.rank > always && c.empty() })
	for rank := ifCount; rank > always && width(kept) > limit; rank-- {
		kept = slices.DeleteFunc(kept, func(c column) bool { return c.rank == rank })
	}
	if over := width(kept) - limit; over > 0 {
		room := kept[0].width() - over
		kept[0].title = cut(kept[0].title, room)
		kept[0].cells = slices.Clone(kept[0].cells)
		for i, cell := range kept[0].cells {
			kept[0].cells[i] = cut(cell, room)
		}
	}
	return kept
}

func cut(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return string(runes[:max(width-1, 0)]) + "…"
}

// grid writes an empty line and columns: names on the left, figures on the
// right of their width.
func (p *printer) grid(columns []column) {
	columns = fit(columns, p.style.Width)
	p.b.WriteString("\n")
	for row := -1; row < len(columns[0].cells); row++ {
		line := ""
		for i, c := range columns {
			cell, code := c.title, dim
			if row >= 0 {
				cell = c.cells[row]
			}
			switch {
			case i == 0 && row < 0:
				code = bold
			case row >= 0 && c.rank == always:
				code = ""
			}
			pad := strings.Repeat(" ", c.width()-utf8.RuneCountInString(cell))
			if i == 0 {
				line = p.paint(code, cell) + pad
				continue
			}
			line += strings.Repeat(" ", gap) + pad + p.paint(code, cell)
		}
		p.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
