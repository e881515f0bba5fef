package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// quantity renders a value and its unit as people write them: three digits that
// count, no exponent. A negative zero and noise below a thousandth are 0.
func quantity(value float64, unit string) string {
	number := number(value)
	if unit == "" {
		return number
	}
	return number + " " + unit
}

func number(v float64) string {
	switch abs := math.Abs(v); {
	case abs < 0.0005:
		return "0"
	case abs >= 100 || v == math.Trunc(v):
		return thousands(math.Round(v))
	case abs >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case abs >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

func thousands(v float64) string {
	digits := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	var b strings.Builder
	if v < 0 {
		b.WriteByte('-')
	}
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// span renders the range of a metric, or "" for a single sample.
func span(m Metric) string {
	if m.N < 2 {
		return ""
	}
	return number(m.Min) + " … " + number(m.Max)
}

// quotient renders a ratio: near 1, where a thousandth may decide, with one
// digit more.
func quotient(v float64) string {
	if v < 1.1 {
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// verdict is the word of a claim; the word alone tells the state, colour only
// repeats it.
func (c Claim) verdict() string {
	switch {
	case c.Kept == nil:
		return "not provable"
	case *c.Kept:
		return "ok"
	}
	return "BROKEN"
}

// headline is the verdict over all claims, and its state: "ok", "BROKEN" or
// "not provable".
func (r Result) headline() (text, state string) {
	kept, broken, open := 0, 0, 0
	for _, c := range r.Claims {
		switch c.verdict() {
		case "ok":
			kept++
		case "BROKEN":
			broken++
		default:
			open++
		}
	}
	switch n := len(r.Claims); {
	case n == 0:
		return "nothing was claimed", "not provable"
	case broken > 0:
		return fmt.Sprintf("%d of %d claims broken", broken, n), "BROKEN"
	case open > 0:
		return fmt.Sprintf("%d of %d claims kept, %d not provable here", kept, n, open), "not provable"
	case n == 1:
		return "the claim is kept", "ok"
	default:
		return fmt.Sprintf("all %d claims kept", n), "ok"
	}
}

// title is the heading of a result.
func (r Result) title() string {
	if r.About != nil && r.About.Title != "" {
		return r.About.Title
	}
	return r.Lab
}

// metricNames lists the metrics in the order of About, the others after them
// by name.
func (r Result) metricNames() []string {
	present := map[string]bool{}
	for _, arm := range r.Arms {
		for name := range arm.Metrics {
			present[name] = true
		}
	}
	var labels []Label
	if r.About != nil {
		labels = r.About.Metrics
	}
	return ordered(present, labels)
}

func (r Result) ratioNames() []string {
	present := map[string]bool{}
	for name := range r.Ratios {
		present[name] = true
	}
	var labels []Label
	if r.About != nil {
		labels = r.About.Ratios
	}
	return ordered(present, labels)
}

func ordered(present map[string]bool, labels []Label) []string {
	var names []string
	for _, label := range labels {
		if present[label.Name] {
			names = append(names, label.Name)
			delete(present, label.Name)
		}
	}
	rest := len(names)
	for name := range present {
		names = append(names, name)
	}
	slices.Sort(names[rest:])
	return names
}

// label is what people read for a metric or ratio.
func (r Result) label(name string) string {
	if r.About != nil {
		for _, l := range slices.Concat(r.About.Metrics, r.About.Ratios) {
			if l.Name == name {
				return l.Text
			}
		}
	}
	return plain(name)
}

// plain makes words of an identifier.
func plain(name string) string { return strings.ReplaceAll(name, "_", " ") }

// published returns the figure that belongs to an arm and a metric.
func (r Result) published(arm, metric string) (Published, bool) {
	for _, p := range r.Published {
		if p.Arm == arm && p.Metric == metric {
			return p, true
		}
	}
	return Published{}, false
}

// publishedRatio is the published figure of a ratio: Metric names the ratio,
// Arm is empty.
func (r Result) publishedRatio(name string) (Published, bool) { return r.published("", name) }

// facts is the line that places a result: where, how often, how long.
func (r Result) facts() []string {
	var facts []string
	if e := r.Environment; e != nil {
		facts = append(facts, e.Rate, e.Rung)
		switch {
		case e.Repetitions == 1:
			facts = append(facts, "1 repetition")
		case e.Repetitions > 1:
			facts = append(facts, fmt.Sprintf("%d repetitions", e.Repetitions))
		}
	}
	facts = append(facts, "Linux "+r.Kernel, quantity(r.Seconds, "s"))
	return slices.DeleteFunc(facts, func(s string) bool { return s == "" })
}

// sources lists where the published figures come from, each once.
func (r Result) sources() []string {
	var all []string
	for _, p := range r.Published {
		if p.Source != "" && !slices.Contains(all, p.Source) {
			all = append(all, p.Source)
		}
	}
	return all
}
