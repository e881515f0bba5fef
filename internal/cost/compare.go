package cost

import (
	"math"

	"github.com/weir-net/weir/internal/report"
)

// A Comparison is what two commands cost, by turns.
type Comparison struct {
	SchemaVersion string     `json:"schema_version"`
	A             string     `json:"a"` // the commands
	B             string     `json:"b"`
	Load          string     `json:"load,omitempty"` // what was measured after each of them; "": they themselves
	Pairs         int        `json:"pairs"`
	Measures      []Compared `json:"measures"`
	Warnings      []string   `json:"warnings,omitempty"`
}

// Compared is one measure of both.
type Compared struct {
	Name string    `json:"name"` // stolen_percent, cpu_percent, ns_per_packet, seconds_per_gbit, packets_per_second, mbit or seconds
	Unit string    `json:"unit"`
	A    []float64 `json:"a"` // in the order of the turns
	B    []float64 `json:"b"`
	// B against A: the mean of the ratios of all pairs, as one multiplies them, and between what the true one lies with a
	// confidence of 99 %; absent where something was 0 or there are fewer than three pairs.
	Ratio *float64 `json:"ratio,omitempty"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
	// Whether that tells them apart.
	Differ bool `json:"differ"`
}

// A Measured is what networking took while a command ran, or its load.
type Measured struct {
	Seconds float64
	Times   Times
	Packets uint64
	Bytes   uint64
}

// Measure sums up what was counted.
func Measure(r *Reading) Measured {
	m := Measured{Seconds: r.At.Seconds()}
	for _, row := range r.Rows {
		m.Times = m.Times.Plus(row.Times)
		m.Packets += row.Packets
		m.Bytes += row.Bytes
	}
	return m
}

var measures = []struct {
	name, unit string
	of         func(Measured) float64
}{
	{"stolen_percent", "%", func(m Measured) float64 { return 100 * m.Times.Stolen().Seconds() / m.Seconds }},
	{"cpu_percent", "%", func(m Measured) float64 { return 100 * m.Times.All().Seconds() / m.Seconds }},
	{"ns_per_packet", "ns", func(m Measured) float64 { return float64(m.Times.All()) / float64(m.Packets) }},
	{"seconds_per_gbit", "s", func(m Measured) float64 { return m.Times.All().Seconds() / (8e-9 * float64(m.Bytes)) }},
	{"packets_per_second", "/s", func(m Measured) float64 { return float64(m.Packets) / m.Seconds }},
	{"mbit", "Mbit/s", func(m Measured) float64 { return 8e-6 * float64(m.Bytes) / m.Seconds }},
	{"seconds", "s", func(m Measured) float64 { return m.Seconds }},
}

// Compare compares what was measured of both, pair by pair.
func Compare(a, b []Measured) []Compared {
	var all []Compared
	for _, m := range measures {
		c := Compared{Name: m.name, Unit: m.unit, A: []float64{}, B: []float64{}}
		var logs []float64
		for i := range min(len(a), len(b)) {
			one, other := m.of(a[i]), m.of(b[i])
			if !finite(one) || !finite(other) {
				continue // nothing was sent
			}
			c.A, c.B = append(c.A, one), append(c.B, other)
			if one > 0 && other > 0 {
				logs = append(logs, math.Log(other/one))
			}
		}
		if i := report.Interval99(logs); len(logs) > 2 && len(logs) == len(c.A) {
			ratio, low, high := math.Exp(i.Mean), math.Exp(i.Mean-i.Half), math.Exp(i.Mean+i.Half)
			c.Ratio, c.Low, c.High = &ratio, &low, &high
			c.Differ = low > 1 || high < 1
		}
		all = append(all, c)
	}
	return all
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
