package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSummarise(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    Metric
	}{
		{nil, Metric{Unit: "s"}},
		{[]float64{3}, Metric{Median: 3, Min: 3, Max: 3, N: 1, Unit: "s"}},
		{[]float64{3, 1, 2}, Metric{Median: 2, Min: 1, Max: 3, N: 3, Unit: "s"}},
		{[]float64{4, 1, 2, 9}, Metric{Median: 3, Min: 1, Max: 9, N: 4, Unit: "s"}},
	} {
		if got := Summarise("s", c.samples); got != c.want {
			t.Errorf("Summarise(%v) = %+v, want %+v", c.samples, got, c.want)
		}
	}
}

func TestSummariseProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 30).Draw(t, "samples")
		before := slices.Clone(samples)
		m := Summarise("s", samples)
		if !slices.Equal(before, samples) {
			t.Fatal("the caller's samples were changed")
		}
		if m.Min > m.Median || m.Median > m.Max {
			t.Fatalf("%+v is out of order", m)
		}
		below, above := 0, 0
		for _, s := range samples {
			if s < m.Median {
				below++
			} else if s > m.Median {
				above++
			}
		}
		if half := len(samples) / 2; below > half || above > half {
			t.Fatalf("%d below and %d above the median of %d", below, above, len(samples))
		}
	})
}

func TestPairRatios(t *testing.T) {
	// A host that gets slower by half over the run: the arms' medians would
	// say 1.9 where every pair says 2.
	alone, full := []float64{1, 1.2, 1.5}, []float64{2, 2.4, 3}
	if got, ok := PairRatios(full, alone); !ok || got != (Ratio{2, 2, 2, 3, Bounds{2, 2, 0.75}}) {
		t.Errorf("got %+v, %t", got, ok)
	}
	if got, ok := PairRatios([]float64{1, 4, 9}, []float64{2, 2}); !ok || got != (Ratio{1.25, 0.5, 2, 2, Bounds{0.5, 2, 0.5}}) {
		t.Errorf("an unpaired sample counts: got %+v, %t", got, ok)
	}
	for _, c := range [][2][]float64{{nil, nil}, {{1}, nil}, {{1, 1}, {1, 0}}} {
		if got, ok := PairRatios(c[0], c[1]); ok || got != (Ratio{}) {
			t.Errorf("PairRatios(%v, %v) = %+v, %t", c[0], c[1], got, ok)
		}
	}
}

// The ranks are those of the tables of the sign test.
func TestMedianBounds(t *testing.T) {
	for n, want := range map[int]struct {
		out        int // samples on either side
		confidence float64
	}{
		1: {0, 0}, 5: {0, 0.9375}, 6: {0, 0.96875}, 8: {0, 0.9921875}, 9: {1, 0.9609375}, 12: {2, 0.9614}, 18: {4, 0.9691}, 30: {9, 0.9572}, 100: {39, 0.9648},
	} {
		samples := make([]float64, n)
		for i := range samples {
			samples[i] = float64((i*7 + 3) % n) // in no order: 7 divides none of them
		}
		got := medianBounds(samples)
		if got.Low != float64(want.out) || got.High != float64(n-1-want.out) || math.Abs(got.Confidence-want.confidence) > 5e-5 {
			t.Errorf("%d samples: %+v, want %+v", n, got, want)
		}
	}
}

// A coin that falls as samples do says how often the true median is covered.
func TestMedianIsCovered(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const tries = 4000
	covered, sure := 0, 0.0
	for range tries {
		samples := make([]float64, 18)
		for i := range samples {
			samples[i] = math.Exp(3 * random.NormFloat64()) // whose median is 1, and whose mean is 90
		}
		b := medianBounds(samples)
		if b.Low <= 1 && 1 <= b.High {
			covered++
		}
		sure = b.Confidence
	}
	if got := float64(covered) / tries; math.Abs(got-sure) > 0.01 {
		t.Errorf("it is covered in %.3f of all tries, said to be in %.3f", got, sure)
	}
}

func TestDiffers(t *testing.T) {
	for r, want := range map[Ratio]bool{
		{Value: 2, Low: 1.9, High: 2.1}:     true,
		{Value: 0.5, Low: 0.4, High: 0.9}:   true,
		{Value: 1.01, Low: 0.99, High: 1.1}: false,
		{Value: 1.01, Low: 1, High: 1.1}:    false,
	} {
		if r.Differs() != want {
			t.Errorf("%+v differs: %t", r, !want)
		}
	}
}

func TestConfidence(t *testing.T) {
	for n, want := range map[int]float64{0: 0, 1: 0, 2: 0.5, 5: 0.9375, 6: 0.96875} {
		if got := Confidence(n); math.Abs(got-want) > 1e-12 {
			t.Errorf("Confidence(%d) = %g, want %g", n, got, want)
		}
	}
}

func TestWhole(t *testing.T) {
	for n, want := range map[int]float64{0: 0, 1: 0.05, 6: 0.607, 30: 0.905, 59: 0.950} {
		if got := Whole(n); math.Abs(got-want) > 0.001 {
			t.Errorf("%d alike: %.3f, want %.3f", n, got, want)
		}
	}
}

func TestInterval99(t *testing.T) {
	for _, c := range []struct {
		samples    []float64
		mean, half float64
	}{
		{nil, 0, math.Inf(1)},
		{[]float64{3, 5}, 4, math.Inf(1)},
		{[]float64{1, 1, 1}, 1, 0},
		{[]float64{1, 2, 3}, 2, 9.925 / math.Sqrt(3)},
		{[]float64{0.99, 1.01, 0.99, 1.01, 0.99, 1.01}, 1, 4.032 * math.Sqrt(6e-4/5/6)},
	} {
		got := Interval99(c.samples)
		if math.Abs(got.Mean-c.mean) > 1e-9 || got.Half != c.half && math.Abs(got.Half-c.half) > 1e-9 {
			t.Errorf("%v: %+v, want %g and %g", c.samples, got, c.mean, c.half)
		}
	}
	// From tables of Student's distribution.
	for freedom, want := range map[int]float64{1: 63.657, 5: 4.032, 30: 2.750, 31: 2.744, 60: 2.660, 99: 2.626} {
		if got := student99(freedom); math.Abs(got-want) > 1e-3 {
			t.Errorf("%d degrees of freedom: %g, want %g", freedom, got, want)
		}
	}
}
