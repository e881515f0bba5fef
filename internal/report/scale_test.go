package report

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestScale(t *testing.T) {
	for limit, want := range map[float64]string{
		0: "0 0.2 0.4 0.6 0.8 1", 1: "0 0.2 0.4 0.6 0.8 1", 97: "0 20 40 60 80 100", 3.2: "0 1 2 3 4",
		950: "0 200 400 600 800 1,000", 0.3: "0 0.05 0.1 0.15 0.2 0.25 0.3",
	} {
		var labels []string
		for _, tick := range scale(limit) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("scale(%g) = %s, want %s", limit, got, want)
		}
	}
}

func TestScaleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Float64Range(1e-3, 1e12).Draw(t, "limit")
		ticks := scale(limit)
		if top := ticks[len(ticks)-1].Value; top < limit*(1-1e-6) || top > limit*3 {
			t.Fatalf("the top is %g", top)
		}
		if len(ticks) < 3 || len(ticks) > 8 {
			t.Fatalf("%d ticks", len(ticks))
		}
	})
}

func TestThin(t *testing.T) {
	var samples [][2]float64
	for i := range 1000 {
		samples = append(samples, [2]float64{float64(i), 7})
	}
	got := thin(samples, 400)
	if len(got) != 400 {
		t.Fatalf("%d samples", len(got))
	}
	for i, s := range got {
		if math.Abs(s[1]-7) > 1e-9 || i > 0 && s[0] <= got[i-1][0] {
			t.Fatalf("sample %d is %v after %v", i, s, got[max(i-1, 0)])
		}
	}
	if got := thin(samples[:3], 400); len(got) != 3 {
		t.Errorf("%d of 3 samples", len(got))
	}
}
