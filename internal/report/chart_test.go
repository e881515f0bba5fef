package report

import (
	"fmt"
	"testing"
)

func TestChartsGroupAndNumber(t *testing.T) {
	one := [][2]float64{{0, 1}}
	all := charts([]Series{
		{Plot: "copy", Name: "alone", Unit: "Mbit/s", Samples: one},
		{Plot: "copy", Name: "full", Samples: one},
		{Plot: "rival", Name: "full", Samples: one},
		{Plot: "copy", Name: "alone", Repetition: 2, Samples: one},
		{Plot: "empty", Name: "never"},
	})
	got := ""
	for _, c := range all {
		got += fmt.Sprint(c.title, c.legend, len(c.lines), "; ")
	}
	// full has the same colour in both charts
	if want := "copy[{alone 0} {full 1}] 3; rival[{full 1}] 1; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTypicalIsTheMiddle(t *testing.T) {
	c := chart{}
	for i, rate := range []float64{40, 90, 50} {
		c.lines = append(c.lines, Series{Name: "full", Repetition: i + 1, Samples: [][2]float64{{0, rate}, {1, rate}}})
	}
	if got := c.typical("full"); got != 3 {
		t.Errorf("repetition %d, want 3", got)
	}
}

func TestDrawingOrder(t *testing.T) {
	series := func(name string, repetition int, rate float64) Series {
		return Series{Plot: "p", Name: name, Repetition: repetition, Samples: [][2]float64{{0, rate}}}
	}
	all := charts([]Series{
		series("alone", 1, 90), series("full", 1, 50), series("alone", 2, 95), series("full", 2, 45), series("alone", 3, 99), series("full", 3, 48),
	})
	got := ""
	for _, s := range all[0].drawing() {
		got += fmt.Sprint(s.Name, s.Repetition, " ")
	}
	if want := "alone1 full1 full2 alone3 alone2 full3 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
