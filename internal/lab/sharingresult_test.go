package lab

import (
	"slices"
	"strings"
	"testing"
)

// A sharingRun is what one repetition of the sharing lab measured on a line of 100
// Mbit/s.
type sharingRun struct {
	mins  [3]float64 // Mbit/s with mins: small, middle, large
	joins [2]float64 // ms with mins: middle, large; 0: never
	use   float64    // % of the line in the worst scene with mins
	flood [2]float64 // Mbit/s beside the flood with mins: middle, large
	free  float64    // Mbit/s of the flood without mins
	large float64    // Mbit/s without mins
	full  float64    // % of the line without mins
}

func sharingJudged(t *testing.T, runs ...sharingRun) *sharingLab {
	t.Helper()
	s, err := newSession(experimentOf(t, "sharing"), Options{Controller: newRawController(""), Repetitions: len(runs)})
	if err != nil {
		t.Fatal(err)
	}
	l := sharingOn(s)
	for _, r := range runs {
		for i, w := range sharers {
			l.measured("weir", w.name+whileAllSend, "Mbit/s", r.mins[i])
		}
		for i, name := range []string{"middle", "large"} {
			if r.joins[i] > 0 {
				l.measured("weir", name+"_join_ms", "ms", r.joins[i])
			}
			l.measured("weir", name+"_beside_flood_mbit", "Mbit/s", r.flood[i])
		}
		for i, scene := range script {
			use := 100.0
			if i == 3 {
				use = r.use
			}
			l.measured("weir", scene.metric, "%", use)
			l.measured("none", scene.metric, "%", r.full)
		}
		l.measured("none", "flood_mbit", "Mbit/s", r.free)
		l.measured("none", "small"+whileAllSend, "Mbit/s", 95-r.large)
		l.measured("none", "middle"+whileAllSend, "Mbit/s", 5)
		l.measured("none", "large"+whileAllSend, "Mbit/s", r.large)
	}
	l.conclude()
	return l
}

var goodSharing = sharingRun{
	mins: [3]float64{20, 30, 50}, joins: [2]float64{20.2, 12.1}, use: 99, flood: [2]float64{29.9, 49.9}, free: 83.7, large: 9, full: 99.5,
}

func TestSharingClaims(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*sharingRun)
		want   string
	}{
		"good":                     {func(*sharingRun) {}, "kept kept kept kept kept"},
		"each just enough":         {func(r *sharingRun) { r.mins = [3]float64{19.6, 29.4, 49} }, "kept kept kept kept kept"},
		"the small one lacks":      {func(r *sharingRun) { r.mins[small] = 19.5 }, "broken kept kept kept kept"},
		"the large one lacks":      {func(r *sharingRun) { r.mins[large] = 48.9 }, "broken kept kept kept kept"},
		"one joins late":           {func(r *sharingRun) { r.joins[0] = 50.5 }, "kept broken kept kept kept"},
		"one never joins":          {func(r *sharingRun) { r.joins[1] = 0 }, "kept broken kept kept kept"},
		"a part lies idle":         {func(r *sharingRun) { r.use = 96.9 }, "kept kept broken kept kept"},
		"a flood takes some":       {func(r *sharingRun) { r.flood[0] = 29.3 }, "kept kept kept broken kept"},
		"a flood that is none":     {func(r *sharingRun) { r.free = 20 }, "kept kept kept open kept"},
		"without mins it has half": {func(r *sharingRun) { r.large = 25 }, "kept kept kept kept broken"},
		"the line was never full":  {func(r *sharingRun) { r.full = 89 }, "open open open open open"},
	} {
		run := goodSharing
		c.change(&run)
		l := sharingJudged(t, run, run, run)
		if got := verdicts(l.result.Claims); got != c.want {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.want, l.result.Claims)
		}
	}
}

// One join of several that came to nothing is not hidden by the others.
func TestEveryJoinCounts(t *testing.T) {
	never := goodSharing
	never.joins[0] = 0
	claim := sharingJudged(t, goodSharing, never, goodSharing).result.Claims[1]
	if *claim.Kept || !strings.Contains(claim.Evidence, "middle: median 20.2, at most 20.2 ms, in 2 of 3 joins") {
		t.Errorf("%+v", claim)
	}
}

func TestSharingEvidence(t *testing.T) {
	other := goodSharing
	other.mins, other.large = [3]float64{20.1, 29.5, 50.4}, 12.5
	l := sharingJudged(t, goodSharing, other)
	for i, want := range map[int]string{
		0: "small: median 20.05, from 20 to 20.1 of 20 Mbit/s; middle: median 29.75, from 29.5 to 30 of 30 Mbit/s; large: median 50.2, from 50 to 50.4 of 50 Mbit/s",
		3: "middle: median 29.9, from 29.9 to 29.9 of 30 Mbit/s; large: median 49.9, from 49.9 to 49.9 of 50 Mbit/s; without mins the flood has 83.7 Mbit/s",
		4: "large / its min: median 0.215, from 0.180 to 0.250 over 2 pairs",
	} {
		if got := l.result.Claims[i].Evidence; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if r := l.result.Ratios["weir_middle_over_min"]; r.Low != 29.5/30 || r.High != 1 {
		t.Errorf("%+v", r)
	}
}

// Every metric and ratio has words that a reader meets in place of its name.
func TestSharingIsDescribed(t *testing.T) {
	l := sharingJudged(t, goodSharing)
	var named []string
	for _, label := range l.result.About.Metrics {
		named = append(named, label.Name)
	}
	for _, arm := range l.result.Arms {
		for name := range arm.Metrics {
			if !slices.Contains(named, name) {
				t.Errorf("%s has no words", name)
			}
		}
	}
	if len(l.result.About.Ratios) != len(l.result.Ratios) {
		t.Errorf("%d ratios, %d of them have words", len(l.result.Ratios), len(l.result.About.Ratios))
	}
	for _, want := range []string{"small with 8 TCP flows and a min of 20 %", "large with one TCP flow and a min of 50 %", "1514 bytes for each 1448"} {
		if !strings.Contains(l.result.About.Summary, want) {
			t.Errorf("%q lacks %q", l.result.About.Summary, want)
		}
	}
}

// How long a join is looked at depends on what is promised: 50 frames must fit.
func TestJoinWindow(t *testing.T) {
	l := sharingJudged(t, goodSharing)
	for who, want := range map[int]float64{middle: 20.187, large: 12.112} {
		if got := l.joinWindow(who).Seconds() * 1e3; got < want-0.001 || got > want+0.001 {
			t.Errorf("%s: %.3f ms, want %.3f", sharers[who].name, got, want)
		}
	}
	if got := l.joinsWithin().Milliseconds(); got != 50 {
		t.Errorf("joins within %d ms", got)
	}
	l.Rate = 10e6
	if got := l.joinsWithin().Milliseconds(); got != 403 {
		t.Errorf("at 10 Mbit/s joins within %d ms", got)
	}
}
