package report

import (
	"bytes"
	_ "embed" // the page's form
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

//go:embed page.html.tmpl
var pageText string

// Page writes a result as one HTML file that needs nothing but itself: styles,
// drawings and the raw data, as JSON in an element with the id "result", are
// inside. It follows the reader's choice of a light or a dark screen.
func Page(w io.Writer, r Result) error {
	form, err := template.New("page").Parse(pageText)
	if err != nil {
		return fmt.Errorf("parse form of the page: %w", err)
	}
	view, err := newView(r)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := form.Execute(&b, view); err != nil {
		return fmt.Errorf("write page of lab %s: %w", r.Lab, err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write page of lab %s: %w", r.Lab, err)
	}
	return nil
}

// A view is a Result in the words and numbers of the page.
type view struct {
	Title, Summary, Headline, State string
	Lab, Facts                      string
	Claims                          []claimView
	Metrics                         []metricView
	MetricsPublished                bool
	Ratios                          []ratioView
	RatioNote                       string
	RatiosPublished                 bool
	Charts                          []chartView
	Environment                     []pair
	Policy, Command                 string
	Sources                         []string
	Warnings                        []string
	Raw                             template.JS
}

type pair struct{ Name, Value string }

type claimView struct{ Word, Class, Text, Evidence string }

// A metricView shows one metric, its arms below each other on one axis.
type metricView struct {
	Name string
	Rows []rowView
}

type rowView struct {
	Arm, Median, Range, Published string
	N                             int
	From, To, At                  float64 // per cent of the axis
}

type ratioView struct {
	Name, Value, Range, Published string
	Same                          bool
}

type chartView struct {
	Title, Unit string
	Legend      []legendView
	Repeated    bool
	Drawings    []template.HTML
}

type legendView struct {
	Colour int
	Dash   string
	Name   string
}

func newView(r Result) (*view, error) {
	// First of all: what no JSON can hold, an infinity, has no place on a scale.
	raw, err := json.Marshal(r) // escapes <, > and &: safe inside a script element
	if err != nil {
		return nil, fmt.Errorf("encode result of lab %s: %w", r.Lab, err)
	}
	text, state := r.headline()
	v := &view{
		Title: r.title(), Headline: text, State: class(state), Lab: r.Lab,
		Facts: strings.Join(r.facts(), " · "), Warnings: r.Warnings, Raw: template.JS(raw),
	}
	if r.About != nil {
		v.Summary = r.About.Summary
	}
	for _, c := range r.Claims {
		v.Claims = append(v.Claims, claimView{c.verdict(), class(c.verdict()), c.Text, c.Evidence})
	}
	for _, name := range r.metricNames() {
		v.Metrics = append(v.Metrics, newMetricView(r, name))
	}
	for _, p := range r.Published {
		v.MetricsPublished = v.MetricsPublished || p.Arm != ""
	}
	v.ratios(r)
	if err := v.charts(r); err != nil {
		return nil, err
	}
	v.environment(r)
	return v, nil
}

// class is the name of a state in the page's styles.
func class(state string) string { return strings.ToLower(strings.ReplaceAll(state, " ", "-")) }

func newMetricView(r Result, metric string) metricView {
	t := metricView{Name: r.label(metric)}
	top := 0.0
	for _, arm := range r.Arms {
		top = max(top, arm.Metrics[metric].Max)
	}
	percent := func(value float64) float64 {
		if top <= 0 {
			return 0
		}
		return math.Round(max(value, 0)/top*1000) / 10
	}
	for _, arm := range r.Arms {
		m, ok := arm.Metrics[metric]
		if !ok {
			continue
		}
		row := rowView{Arm: plain(arm.Name), Median: "not measured", Range: span(m), N: m.N,
			From: percent(m.Min), To: percent(m.Max), At: percent(m.Median)}
		if m.N > 0 {
			row.Median = quantity(m.Median, m.Unit)
		}
		if f, ok := r.published(arm.Name, metric); ok {
			row.Published = quantity(f.Value, f.Unit)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (v *view) ratios(r Result) {
	for _, name := range r.ratioNames() {
		ratio := r.Ratios[name]
		row := ratioView{Name: r.label(name), Value: quotient(ratio.Value), Same: !ratio.Differs(),
			Range: quotient(ratio.Low) + " … " + quotient(ratio.High)}
		if f, ok := r.publishedRatio(name); ok {
			row.Published, v.RatiosPublished = quotient(f.Value), true
		}
		v.Ratios = append(v.Ratios, row)
	}
	v.RatioNote = "Each ratio is the median over pairs of runs made in turn; the range is the smallest and the largest pair."
	if r.Environment != nil && r.Environment.Repetitions > 1 {
		n := r.Environment.Repetitions // some arms may have run more often, whose ranges are the surer
		v.RatioNote += fmt.Sprintf(" With %d pairs that range covers the true median with a confidence of %.1f %%.", n, 100*Confidence(n))
	}
}

func (v *view) charts(r Result) error {
	for _, c := range charts(r.Series) {
		cv := chartView{Title: c.title, Unit: c.unit, Repeated: len(c.lines) > len(c.legend)}
		for _, k := range c.legend {
			var dash []string
			for _, d := range dashes[k.number%len(dashes)] {
				dash = append(dash, fmt.Sprint(d.Points()))
			}
			cv.Legend = append(cv.Legend, legendView{k.number % lineColours, strings.Join(dash, " "), k.name})
		}
		for _, f := range frames {
			drawing, err := c.svg(f)
			if err != nil {
				return err
			}
			cv.Drawings = append(cv.Drawings, drawing)
		}
		v.Charts = append(v.Charts, cv)
	}
	return nil
}

func (v *view) environment(r Result) {
	add := func(name, value string) {
		if value != "" {
			v.Environment = append(v.Environment, pair{name, value})
		}
	}
	add("Weir", r.Version)
	add("Kernel", "Linux "+r.Kernel)
	if e := r.Environment; e != nil {
		add("CPUs", e.processors())
		add("Against Spectre v2", e.Mitigation)
		add("Rate", e.Rate)
		add("Mechanism", e.Rung)
		add("Queue without Weir", e.Bottleneck)
		add("Congestion control", e.Congestion)
		add("Repetitions", fmt.Sprint(e.Repetitions))
		v.Command, v.Policy = e.Command, strings.TrimSpace(e.Policy)
	}
	add("Started", r.Started)
	add("Took", quantity(r.Seconds, "s"))
	v.Sources = r.sources()
}
