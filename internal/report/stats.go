package report

import (
	"math"
	"slices"
)

// Summarise sums up samples of one unit. Without samples it returns the zero
// Metric with that unit, whose N says so.
func Summarise(unit string, samples []float64) Metric {
	if len(samples) == 0 {
		return Metric{Unit: unit}
	}
	return Metric{
		Median: median(samples),
		Min:    slices.Min(samples),
		Max:    slices.Max(samples),
		N:      len(samples),
		Unit:   unit,
	}
}

// PairRatios divides the samples of one arm by those of another that ran in
// turn with it: the first by the first, the second by the second. Pairing takes
// out what drifts over a run, the host's other load above all. It reports false
// where there is no pair or a divisor is zero.
func PairRatios(over, under []float64) (Ratio, bool) {
	n := min(len(over), len(under))
	ratios := make([]float64, 0, n)
	for i := range n {
		if under[i] == 0 {
			return Ratio{}, false
		}
		ratios = append(ratios, over[i]/under[i])
	}
	if n == 0 {
		return Ratio{}, false
	}
	return Ratio{Value: median(ratios), Low: slices.Min(ratios), High: slices.Max(ratios)}, true
}

// Differs reports whether all pairs lie on one side of 1. Where they do not,
// no difference between the arms was shown.
func (r Ratio) Differs() bool { return r.Low > 1 || r.High < 1 }

// Confidence is the probability that the range from the smallest to the largest
// of n pairs covers the true median, whatever the distribution: all n fall on
// one side of it with probability 2^(1-n).
func Confidence(n int) float64 {
	if n < 1 {
		return 0
	}
	return 1 - math.Pow(2, 1-float64(n))
}

func median(samples []float64) float64 {
	s := slices.Clone(samples)
	slices.Sort(s)
	half := len(s) / 2
	if len(s)%2 == 1 {
		return s[half]
	}
	return s[half-1] + (s[half]-s[half-1])/2
}
