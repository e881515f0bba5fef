package report

import "testing"

func TestFitDropsByRank(t *testing.T) {
	columns := []column{
		{title: "copy time", cells: []string{"  prioritised"}},
		{title: "median", cells: []string{"1.50 s"}},
		{title: "min … max", rank: ifRange, cells: []string{"1.40 … 1.60"}},
		{title: "n", rank: ifCount, cells: []string{"6"}},
		{title: "published", rank: ifPublished, cells: []string{"7 s"}},
	}
	for limit, want := range map[int]int{60: 5, 46: 4, 45: 4, 34: 3, 24: 2} {
		got := fit(columns, limit)
		if len(got) != want || width(got) > limit {
			t.Errorf("%d columns kept in %d with width %d, want %d", len(got), limit, width(got), want)
		}
	}
	if got := fit(columns, 15); got[0].cells[0] != "  prio…" || got[1].cells[0] != "1.50 s" {
		t.Errorf("a name is cut before a figure: %+v", got)
	}
	columns[4].cells[0] = ""
	if got := fit(columns, 80); len(got) != 4 {
		t.Errorf("%d columns with one empty, want 4", len(got))
	}
}

func TestRatioGridMarksNoDifference(t *testing.T) {
	columns := ratioGrid(Result{Ratios: map[string]Ratio{
		"a": {Value: 2.004, Low: 1.9, High: 2.1},
		"b": {Value: 1.0042, Low: 0.99, High: 1.02},
	}})
	if got := columns[1].cells; got[0] != "2.00" || got[1] != "~ 1.004" {
		t.Errorf("got %q", got)
	}
}
