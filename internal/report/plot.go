package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"regexp"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colours of a drawing stand for roles. The page's own take their place (see
// recolour), so that one SVG serves a light and a dark screen.
var (
	ink  = color.RGBA{R: 0xfe, G: 0x01, A: 0xff}
	rule = color.RGBA{R: 0xfe, G: 0x02, A: 0xff}
)

func lineColour(i int) color.RGBA {
	return color.RGBA{R: 0xfe, G: 0x10, B: uint8(i % lineColours), A: 0xff}
}

// faintColour is that of the repetitions behind the typical one.
func faintColour(i int) color.RGBA {
	return color.RGBA{R: 0xfe, G: 0x11, B: uint8(i % lineColours), A: 0xff}
}

// lineColours is the number of --line-N colours that the page defines.
const lineColours = 6

// dashes tells lines apart where colours do not.
var dashes = [][]vg.Length{nil, {7, 3}, {2.5, 1.6}, {8, 2, 1.5, 2}, {4, 4}, {12, 4}}

var role = regexp.MustCompile(`#FE([0-9A-F]{2})([0-9A-F]{2})`)

// recolour puts the page's colours in the place of roles.
func recolour(svg []byte) []byte {
	return role.ReplaceAllFunc(svg, func(match []byte) []byte {
		switch string(match[3:5]) {
		case "01":
			return []byte("var(--ink-2)")
		case "02":
			return []byte("var(--rule)")
		}
		n, err := strconv.ParseUint(string(match[5:7]), 16, 8)
		if err != nil {
			return match
		}
		if string(match[3:5]) == "11" {
			return fmt.Appendf(nil, "color-mix(in srgb, var(--line-%d) 30%%, transparent)", n)
		}
		return fmt.Appendf(nil, "var(--line-%d)", n)
	})
}

// A frame is the size in points in which a chart is drawn. The page shows the
// one that suits its width, so that letters keep their size.
type frame struct {
	class         string
	width, height vg.Length
}

var frames = []frame{{"wide", 720, 250}, {"narrow", 340, 230}}

// svg draws a chart as an svg element without size: the page scales it.
func (c chart) svg(f frame) (template.HTML, error) {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	words := c.words(f)
	c.axes(p, words)
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal = draw.LineStyle{Color: rule, Width: 0.6}
	p.Add(grid)
	for _, s := range c.drawing() {
		typical := s.Repetition == c.typical(s.Name)
		line, err := c.line(s, typical)
		if err != nil {
			return "", err
		}
		p.Add(line)
	}
	for _, w := range words {
		if err := w.draw(p, rowsOf(words)); err != nil {
			return "", err
		}
	}
	canvas := vgsvg.New(f.width, f.height)
	p.Draw(draw.Crop(draw.New(canvas), 0, -12, 0, -6)) // half of a label at the ends
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("draw %s: %w", c.title, err)
	}
	svg := b.Bytes()
	if start := bytes.Index(svg, []byte("<g ")); start > 0 {
		svg = svg[start:]
	}
	head := fmt.Sprintf(`<svg class="%s" viewBox="0 0 %g %g" role="img" aria-label="%s">`,
		f.class, f.width.Points(), f.height.Points(), template.HTMLEscapeString(c.title))
	return template.HTML(head) + template.HTML(recolour(svg)), nil
}

// axes gives the plot its scales and letters, and room for words above the data.
func (c chart) axes(p *plot.Plot, words []markWords) {
	xmax, ymax := c.extent()
	ticks := scale(ymax)
	top := ticks[len(ticks)-1].Value
	for axis, label := range map[*plot.Axis]string{&p.X: "time (s)", &p.Y: c.unit} {
		axis.Min = 0
		axis.Color, axis.Tick.Color, axis.Width, axis.Tick.Width = rule, rule, 0.8, 0
		axis.Tick.Length, axis.Padding = 4, 0
		axis.Label.Text, axis.Label.Padding = label, 4
		axis.Label.TextStyle.Color, axis.Tick.Label.Color = ink, ink
		axis.Label.TextStyle.Font = letters
		axis.Tick.Label.Font = letters
	}
	p.Y.Width = 0
	p.X.Tick.Length = 7 // clear of the lowest label of the other axis
	p.X.Max, p.Y.Max = xmax, top*(1+rowHeight*float64(rowsOf(words)))
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(within(scale(xmax), xmax)), plot.ConstantTicks(ticks)
}

// letters are those of the axes and of marks.
var letters = font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, 11)

// extent is the end of the time in seconds, never 0, and the highest value.
func (c chart) extent() (seconds, value float64) {
	seconds = 1e-3
	for _, s := range c.lines {
		for _, sample := range s.Samples {
			seconds, value = max(seconds, sample[0]), max(value, sample[1])
		}
	}
	return seconds, value
}

// number is that of a name of the legend.
func (c chart) number(name string) int {
	i := slices.IndexFunc(c.legend, func(k key) bool { return k.name == name })
	return c.legend[i].number
}

func (c chart) line(s Series, typical bool) (*plotter.Line, error) {
	points := make(plotter.XYs, 0, len(s.Samples))
	for _, sample := range thin(s.Samples, 400) {
		points = append(points, plotter.XY{X: sample[0], Y: sample[1]})
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, fmt.Errorf("draw series %s of %s: %w", s.Name, c.title, err)
	}
	i := c.number(s.Name)
	line.LineStyle = draw.LineStyle{Color: lineColour(i), Width: 2, Dashes: dashes[i%len(dashes)]}
	if !typical {
		line.LineStyle = draw.LineStyle{Color: faintColour(i), Width: 0.9}
	}
	return line, nil
}
