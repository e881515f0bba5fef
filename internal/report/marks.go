package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A markWords is a mark and the place of its words in a drawing.
type markWords struct {
	Mark
	left     bool // they end at the mark
	row      int  // from the highest
	from, to vg.Length
}

// The words of marks: a row's height as a part of the data's, the gap between them and
// their mark, and what a frame has beside the data.
const (
	rowHeight = 0.12
	wordGap   = vg.Length(4)
	beside    = vg.Length(70)
)

// words places those of the typical series in the fewest rows in which none covers
// another, or the post of another: who stands farther from the middle is higher.
func (c chart) words(f frame) (placed []markWords) {
	xmax, _ := c.extent()
	style := draw.TextStyle{Font: letters, Handler: plot.DefaultTextHandler}
	var all []markWords
	for _, s := range c.lines {
		if s.Repetition != c.typical(s.Name) {
			continue
		}
		for _, m := range s.Marks {
			at, width := vg.Length(m.Seconds/xmax)*(f.width-beside), style.Width(m.Text)
			w := markWords{Mark: m, from: at + wordGap, to: at + wordGap + width}
			if m.Seconds > xmax/2 {
				w.left, w.from, w.to = true, at-wordGap-width, at-wordGap
			}
			all = append(all, w)
		}
	}
	slices.SortStableFunc(all, func(a, b markWords) int {
		return cmp.Compare(math.Abs(b.Seconds-xmax/2), math.Abs(a.Seconds-xmax/2))
	})
	for _, w := range all {
		for slices.ContainsFunc(placed, w.covers) {
			w.row++
		}
		placed = append(placed, w)
	}
	return placed
}

// covers reports whether words would stand over others.
func (w markWords) covers(other markWords) bool {
	return w.row == other.row && w.from < other.to+wordGap && other.from < w.to+wordGap
}

// rowsOf is how many rows the words take.
func rowsOf(words []markWords) (rows int) {
	for _, w := range words {
		rows = max(rows, w.row+1)
	}
	return rows
}

// draw draws a moment as a post up to its words, of so many rows that the axes have
// left room for.
func (w markWords) draw(p *plot.Plot, rows int) error {
	top := p.Y.Max * (1 - float64(w.row)*rowHeight/(1+float64(rows)*rowHeight))
	post, err := plotter.NewLine(plotter.XYs{{X: w.Seconds, Y: 0}, {X: w.Seconds, Y: top}})
	if err != nil {
		return fmt.Errorf("draw mark %q: %w", w.Text, err)
	}
	post.LineStyle = draw.LineStyle{Color: ink, Width: 0.8, Dashes: []vg.Length{2, 2}}
	words, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: w.Seconds, Y: top}}, Labels: []string{w.Text}})
	if err != nil {
		return fmt.Errorf("draw mark %q: %w", w.Text, err)
	}
	style := &words.TextStyle[0]
	style.Color, style.Font, style.YAlign = ink, letters, draw.YTop
	words.Offset.X = wordGap
	if w.left {
		style.XAlign, words.Offset.X = draw.XRight, -wordGap
	}
	p.Add(post, words)
	return nil
}
