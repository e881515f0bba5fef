package lab

import (
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

// verdicts are those of some claims as one word each.
func verdicts(claims []report.Claim) string {
	var words []string
	for _, c := range claims {
		switch {
		case c.Kept == nil:
			words = append(words, "open")
		case *c.Kept:
			words = append(words, "kept")
		default:
			words = append(words, "broken")
		}
	}
	return strings.Join(words, " ")
}

// An sshRun is what one repetition of the ssh lab measured on a line of 100
// Mbit/s, whose payload is 95.6.
type sshRun struct {
	alone, full, prioritised float64 // s
	before, rival            float64 // Mbit/s: before the copy, and while its packets wait
	watched                  float64 // part of the copy
}

func judged(t *testing.T, floor policy.Rate, runs ...sshRun) *sshLab {
	t.Helper()
	s, err := newSession(experimentOf(t, "ssh"), Options{Controller: newRawController(""), Repetitions: len(runs)})
	if err != nil {
		t.Fatal(err)
	}
	l := &sshLab{session: s, counters: []ClassCount{
		{Class: 0, Levels: []policy.Level{0, 1}, Floor: floor, Bytes: 2_000_000},
		{Class: 1, Levels: []policy.Level{14, 15}, Bytes: 17_500_000},
		{Class: 2, Bytes: 40_000},
	}}
	for _, r := range runs {
		l.measured("alone", "copy_seconds", "s", r.alone)
		l.measured("full", "copy_seconds", "s", r.full)
		l.measured("prioritised", "copy_seconds", "s", r.prioritised)
		if r.watched > 0 {
			l.measured("prioritised", "rival_while_waiting_mbit", "Mbit/s", r.rival)
			l.watched = append(l.watched, r.watched)
		}
		l.before = append(l.before, r.before)
	}
	l.conclude()
	return l
}

func TestSSHClaims(t *testing.T) {
	good := sshRun{alone: 1.4, full: 2.8, prioritised: 1.41, before: 95, rival: 0.1, watched: 0.8}
	with := func(change func(*sshRun)) sshRun {
		r := good
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		run   sshRun
		floor policy.Rate
		want  string
	}{
		"good":                         {good, 0, "kept kept kept"},
		"little slower":                {with(func(r *sshRun) { r.full = 2.5 }), 0, "broken kept kept"},
		"priority holds not":           {with(func(r *sshRun) { r.prioritised = 1.5 }), 0, "kept broken kept"},
		"rival at a hundredth":         {with(func(r *sshRun) { r.rival = 0.99 }), 0, "kept kept kept"},
		"rival above it":               {with(func(r *sshRun) { r.rival = 1.01 }), 0, "kept kept broken"},
		"rival above, within a floor":  {with(func(r *sshRun) { r.rival = 1.19 }), 200_000, "kept kept kept"},
		"rival above that floor":       {with(func(r *sshRun) { r.rival = 1.21 }), 200_000, "kept kept broken"},
		"rival at a twentieth":         {with(func(r *sshRun) { r.rival = 4.9 }), 200_000, "kept kept broken"},
		"hardly anything was seen":     {with(func(r *sshRun) { r.watched = 0.19 }), 0, "kept kept open"},
		"nothing was seen":             {with(func(r *sshRun) { r.watched = 0 }), 0, "kept kept open"},
		"the line was not full before": {with(func(r *sshRun) { r.before = 80 }), 0, "open open open"},
	} {
		l := judged(t, c.floor, c.run, c.run, c.run)
		if got := verdicts(l.result.Claims); got != c.want {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.want, l.result.Claims)
		}
	}
}

// The median decides; what the others were, the evidence says.
func TestSSHEvidence(t *testing.T) {
	l := judged(t, 9_600,
		sshRun{1.4, 2.8, 1.4, 95, 0.1, 0.5}, sshRun{1.4, 2.8, 1.4, 95, 0.5, 0.8}, sshRun{1.4, 2.8, 1.54, 95, 10, 0.9})
	claims := l.result.Claims
	if got := verdicts(claims); got != "kept kept kept" {
		t.Errorf("%s: %+v", got, claims)
	}
	for i, want := range []string{
		"median 2.000, from 2.000 to 2.000 over 3 pairs",
		"median 1.000, from 1.000 to 1.100 over 3 pairs; class 0 sent 2.0 MB; class 1 sent 17.5 MB",
		"median 0.5 %, from 0.1 to 10 % of the line, while packets waited for at least 80 % of the copy; the queue's floor is 0.0096 %",
	} {
		if claims[i].Evidence != want {
			t.Errorf("%q, want %q", claims[i].Evidence, want)
		}
	}
	one := sshRun{1.4, 2.8, 1.4, 95, 0.1, 0.5}
	unseen := one
	unseen.watched = 0
	if c := judged(t, 0, one, unseen).result.Claims[2]; c.Kept != nil || c.Evidence != "in 1 of 2 copies packets were seen to wait, for 50 % of the time: too little" {
		t.Errorf("%+v", c)
	}
	if l := judged(t, 0, sshRun{1.4, 2.8, 1.4, 40, 0.1, 0.5}); len(l.result.Warnings) != 2 || !strings.Contains(l.result.Warnings[1], "filled 40 of 96 Mbit/s") {
		t.Errorf("warnings %q", l.result.Warnings)
	}
}
