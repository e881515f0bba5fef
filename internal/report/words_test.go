package report

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0, "s", "0 s"},
		{math.Copysign(0, -1), "s", "0 s"},
		{0.0001, "ms", "0 ms"},
		{0.0123, "ms", "0.012 ms"},
		{0.5, "ms", "0.50 ms"},
		{1.4996, "s", "1.50 s"},
		{7, "s", "7 s"},
		{47.26, "Mbit/s", "47.3 Mbit/s"},
		{941.6, "Mbit/s", "942 Mbit/s"},
		{1234567.8, "", "1,234,568"},
		{-1234, "B", "-1,234 B"},
		{-0.25, "", "-0.25"},
	} {
		if got := quantity(c.value, c.unit); got != c.want {
			t.Errorf("quantity(%g, %q) = %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestHeadline(t *testing.T) {
	ok, broken, open := Kept("a", true, ""), Kept("b", false, ""), Unproven("c", "")
	for _, c := range []struct {
		claims      []Claim
		text, state string
	}{
		{nil, "nothing was claimed", "not provable"},
		{[]Claim{ok}, "the claim is kept", "ok"},
		{[]Claim{ok, ok}, "all 2 claims kept", "ok"},
		{[]Claim{ok, open}, "1 of 2 claims kept, 1 not provable here", "not provable"},
		{[]Claim{broken, open, ok}, "1 of 3 claims broken", "BROKEN"},
	} {
		if text, state := (Result{Claims: c.claims}).headline(); text != c.text || state != c.state {
			t.Errorf("%v: %q, %q; want %q, %q", c.claims, text, state, c.text, c.state)
		}
	}
}

func TestMetricNames(t *testing.T) {
	r := Result{Arms: []Arm{
		{Name: "x", Metrics: map[string]Metric{"z": {}, "b": {}}},
		{Name: "y", Metrics: map[string]Metric{"a": {}, "first": {}}},
	}}
	if got, want := r.metricNames(), []string{"a", "b", "first", "z"}; !slices.Equal(got, want) {
		t.Errorf("by name: %q, want %q", got, want)
	}
	r.About = &About{Metrics: []Label{{"first", "First"}, {"absent", "Absent"}, {"z", "Z"}}}
	if got, want := r.metricNames(), []string{"first", "z", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("in the order of About: %q, want %q", got, want)
	}
	if r.label("z") != "Z" || r.label("some_thing") != "some thing" {
		t.Errorf("labels %q, %q", r.label("z"), r.label("some_thing"))
	}
}

func TestFacts(t *testing.T) {
	for n, want := range map[int]string{0: "[100Mbit Linux 6.1 2 s]", 1: "[100Mbit 1 repetition Linux 6.1 2 s]", 6: "[100Mbit 6 repetitions Linux 6.1 2 s]"} {
		r := Result{Kernel: "6.1", Seconds: 2, Environment: &Environment{Rate: "100Mbit", Repetitions: n}}
		if got := fmt.Sprint(r.facts()); got != want {
			t.Errorf("%d repetitions: %s, want %s", n, got, want)
		}
	}
}
