package lab

import (
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

// A priorityRun is what one repetition of the priority lab measured on a line of
// 100 Mbit/s, whose payload is 95.6.
type priorityRun struct {
	solo, winner, loser float64 // Mbit/s
	first, second       float64 // Mbit/s in the same class
	raise               float64 // ms; 0: without effect
}

func prioritiesJudged(t *testing.T, flipped []float64, effective float64, runs ...priorityRun) *priorityLab {
	t.Helper()
	s, err := newSession(experimentOf(t, "priority"), Options{Controller: newRawController(""), Repetitions: len(runs)})
	if err != nil {
		t.Fatal(err)
	}
	l := &priorityLab{session: s, classes: []ClassCount{
		{Class: 0, Levels: []policy.Level{0, 1}, Floor: 200_000},
		{Class: 1, Levels: []policy.Level{2, 3}, Floor: 200_000}, // nobody's here
		{Class: 2, Levels: []policy.Level{4, 5}, Floor: 200_000},
	}}
	for _, r := range runs {
		l.measured("solo", "second_mbit", "Mbit/s", r.solo)
		l.measured("same_class", "first_mbit", "Mbit/s", r.first)
		l.measured("same_class", "second_mbit", "Mbit/s", r.second)
		l.measured("different_class", "first_mbit", "Mbit/s", r.loser)
		l.measured("different_class", "second_mbit", "Mbit/s", r.winner)
		if r.raise > 0 {
			l.measured("live_raise", "effect_ms", "ms", r.raise)
		}
	}
	for _, ms := range flipped {
		l.measured("flips", "effect_ms", "ms", ms)
	}
	l.measured("flips", "flips_effective", "of 100", effective)
	l.conclude()
	return l
}

// times is one value so many times.
func times(n int, value float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = value
	}
	return all
}

func TestPriorityClaims(t *testing.T) {
	good := priorityRun{solo: 95.6, winner: 95.5, loser: 0.1, first: 48, second: 47, raise: 8}
	with := func(change func(*priorityRun)) priorityRun {
		r := good
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		run       priorityRun
		flipped   []float64
		effective float64
		want      string
	}{
		"good":                     {good, times(flips, 3), flips, "kept kept kept kept kept"},
		"uneven":                   {with(func(r *priorityRun) { r.first, r.second = 60, 35 }), times(flips, 3), flips, "broken kept kept kept kept"},
		"nothing arrived together": {with(func(r *priorityRun) { r.first, r.second = 0, 0 }), times(flips, 3), flips, "open kept kept kept kept"},
		"the winner lacks":         {with(func(r *priorityRun) { r.winner = 94 }), times(flips, 3), flips, "kept broken kept kept kept"},
		"nothing arrived alone":    {with(func(r *priorityRun) { r.solo = 0 }), times(flips, 3), flips, "kept open open kept kept"},
		// Half a per cent is 0.5, the floor of the loser's class 0.2.
		"the loser at its most":    {with(func(r *priorityRun) { r.loser = 0.69 }), times(flips, 3), flips, "kept kept kept kept kept"},
		"the loser has more":       {with(func(r *priorityRun) { r.loser = 0.71 }), times(flips, 3), flips, "kept kept broken kept kept"},
		"a raise is slow":          {with(func(r *priorityRun) { r.raise = 11 }), times(flips, 3), flips, "kept kept kept broken kept"},
		"flips are slow":           {good, times(flips, 11), flips, "kept kept kept broken kept"},
		"a raise has no effect":    {with(func(r *priorityRun) { r.raise = 0 }), times(flips, 3), flips, "kept kept kept broken kept"},
		"a flip has no effect":     {good, times(flips-1, 3), flips - 1, "kept kept kept broken broken"},
		"a flip leaves some there": {good, times(flips, 3), flips - 1, "kept kept kept kept broken"},
	} {
		l := prioritiesJudged(t, c.flipped, c.effective, c.run, c.run)
		if got := verdicts(l.result.Claims); got != c.want {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.want, l.result.Claims)
		}
	}
}

// One raise of several that had no effect is not hidden by the others.
func TestRaiseWithoutEffectCounts(t *testing.T) {
	good := priorityRun{solo: 95.6, winner: 95.5, first: 48, second: 47, raise: 8}
	deaf := good
	deaf.raise = 0
	claims := prioritiesJudged(t, times(flips, 3), flips, good, good, deaf).result.Claims
	if claim := claims[3]; *claim.Kept || claim.Evidence != "live raise: 2 of 3 changes had an effect within 250ms" {
		t.Errorf("%+v", claim)
	}
}

// What the bound on the senders does is told with the claim that rests on it.
func TestHeadroomIsTold(t *testing.T) {
	r := prioritiesJudged(t, times(flips, 3), flips, priorityRun{solo: 95.6, winner: 95.5, first: 48, second: 47, raise: 8}).result
	if c := r.Claims[0]; !strings.Contains(c.Text, "1.25 times the line") || !strings.Contains(c.Evidence, "without that bound") {
		t.Errorf("%+v", c)
	}
	if !strings.Contains(r.About.Summary, "1.25 times the line") {
		t.Errorf("summary %q", r.About.Summary)
	}
}
