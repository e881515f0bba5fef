package report

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
)

// scale returns ticks from 0 in steps of 1, 2 or 5 that cover a maximum.
func scale(limit float64) []plot.Tick {
	if limit <= 0 {
		limit = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(limit/4)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if limit/(step*factor) <= 6 {
			step *= factor
			break
		}
	}
	var ticks []plot.Tick
	for i := 0; ; i++ {
		value := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: value, Label: tickLabel(value)})
		if value >= limit*(1-1e-9) {
			return ticks
		}
	}
}

// tickLabel shows six digits, which rounds away the noise of a product:
// 0.30000000000000004.
func tickLabel(v float64) string {
	if v >= 1000 {
		return thousands(v)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// within are the ticks up to a limit.
func within(ticks []plot.Tick, limit float64) []plot.Tick {
	return slices.DeleteFunc(ticks, func(t plot.Tick) bool { return t.Value > limit*(1+1e-9) })
}

// thin averages neighbours until at most n samples are left.
func thin(samples [][2]float64, n int) [][2]float64 {
	if len(samples) <= n {
		return samples
	}
	out := make([][2]float64, 0, n)
	for i := range n {
		from, to := i*len(samples)/n, (i+1)*len(samples)/n
		var t, v float64
		for _, s := range samples[from:to] {
			t, v = t+s[0], v+s[1]
		}
		count := float64(to - from)
		out = append(out, [2]float64{t / count, v / count})
	}
	return out
}
