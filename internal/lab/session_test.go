package lab

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

var fourClasses = []ClassCount{
	{Class: 0, Levels: []policy.Level{0, 1, 2, 3}, Floor: 100},
	{Class: 1, Levels: []policy.Level{4, 5, 6, 7}, Floor: 10},
	{Class: 2, Levels: nil, Floor: 1},
	{Class: 3, Levels: []policy.Level{12, 15}},
}

func TestFloor(t *testing.T) {
	for level, want := range map[policy.Level]policy.Rate{0: 10, 3: 10, 4: 100, 15: 100} {
		if got := floor(fourClasses, level); got != want {
			t.Errorf("beside %d: %d, want %d", level, got, want)
		}
	}
}

func TestClass(t *testing.T) {
	if c, err := class(fourClasses, 6); err != nil || c.Class != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := class(fourClasses, 9); err == nil || !strings.Contains(err.Error(), "priority 9") {
		t.Errorf("got %v", err)
	}
}

func TestSpread(t *testing.T) {
	whole := report.Bounds{Low: 1.25, High: 2, Confidence: 0.875}
	for want, r := range map[string]report.Ratio{
		"1.500 in the only pair":                         {Value: 1.5, Pairs: 1, Median: whole},
		"median 1.500, from 1.250 to 2.000 over 4 pairs": {Value: 1.5, Low: 1.25, High: 2, Pairs: 4, Median: whole},
		"median 1.500, from 1.250 to 2.000 over 9 pairs, the true one from 1.375 to 1.750 with a confidence of 96 %": {
			Value: 1.5, Low: 1.25, High: 2, Pairs: 9, Median: report.Bounds{Low: 1.375, High: 1.75, Confidence: 0.961},
		},
	} {
		if got := spread(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSamplesKeepTheirOrder(t *testing.T) {
	s := &session{samples: map[string]map[string]*samples{}}
	for i, arm := range []string{"late", "early", "late", "extra"} {
		s.measured(arm, "m", "s", float64(i))
	}
	if got := s.values("late", "m"); !slices.Equal(got, []float64{0, 2}) {
		t.Errorf("late: %v", got)
	}
	if got := s.values("late", "other"); got != nil {
		t.Errorf("what was never measured: %v", got)
	}
	s.summarise("early", "absent", "late")
	var arms []string
	for _, arm := range s.result.Arms {
		arms = append(arms, arm.Name)
	}
	if want := []string{"early", "late", "extra"}; !slices.Equal(arms, want) {
		t.Errorf("arms %q, want %q", arms, want)
	}
	if m := s.result.Arms[1].Metrics["m"]; m.N != 2 || m.Median != 1 || m.Unit != "s" {
		t.Errorf("late: %+v", m)
	}
}

func TestCloseUndoesAllFromTheLast(t *testing.T) {
	s := &session{Options: Options{Controller: newRawController("")}}
	order, bad := "", errors.New("bad")
	for _, name := range []string{"a", "b", "c"} {
		s.onClose(func() error {
			order += name
			if name == "b" {
				return bad
			}
			return nil
		})
	}
	if err := s.close(); !errors.Is(err, bad) || order != "cba" {
		t.Errorf("order %q, %v", order, err)
	}
}
