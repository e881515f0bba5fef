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
	return Ratio{Value: median(ratios), Low: slices.Min(ratios), High: slices.Max(ratios), Pairs: n, Median: medianBounds(ratios)}, true
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

// medianBounds leaves out as many samples on either side as it can. The true median is outside if as many, or fewer, fall
// on one side of it, which each does as a coin does, whatever the distribution.
func medianBounds(samples []float64) Bounds {
	s := slices.Sorted(slices.Values(samples))
	n := len(s)
	b := Bounds{s[0], s[n-1], Confidence(n)}
	fewer, all := 2.0, math.Pow(2, float64(n)) // of all ways in which n coins fall, in how many 0 to out of them do so on one side
	for out, ways := 1, 1.0; 2*out < n; out++ {
		ways *= float64(n-out+1) / float64(out)
		fewer += 2 * ways
		sure := 1 - fewer/all
		if sure < 0.95 {
			break
		}
		b = Bounds{s[out], s[n-1-out], sure}
	}
	return b
}

// Whole is the least part of all tries that may go as n tries did which went alike, with a
// confidence of 95 %: were it less, n alike would be rarer than one time in twenty.
func Whole(n int) float64 {
	if n < 1 {
		return 0
	}
	return math.Pow(0.05, 1/float64(n))
}

// An Interval is where the true mean lies with a probability of 99 %, if samples scatter as
// errors do: as far on either side of Mean as Half.
type Interval struct{ Mean, Half float64 }

// Interval99 is the interval of samples; without three of them it is as wide as can be.
func Interval99(samples []float64) Interval {
	n := float64(len(samples))
	var sum, squares float64
	for _, x := range samples {
		sum += x
	}
	if n < 3 {
		return Interval{Mean: sum / max(n, 1), Half: math.Inf(1)}
	}
	mean := sum / n
	for _, x := range samples {
		squares += (x - mean) * (x - mean)
	}
	return Interval{Mean: mean, Half: student99(len(samples)-1) * math.Sqrt(squares/(n-1)/n)}
}

// student99 is the 99.5th percentile of Student's distribution.
func student99(freedom int) float64 {
	table := [...]float64{
		63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
		2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
	}
	if freedom <= len(table) {
		return table[freedom-1]
	}
	// The first two terms of its expansion around the normal distribution; here they are
	// good to four digits.
	const z = 2.5758
	v := float64(freedom)
	return z + (z*z*z+z)/(4*v) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*v*v)
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
