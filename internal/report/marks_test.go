package report

import "testing"

func marked(marks ...Mark) chart {
	return charts([]Series{
		{Plot: "p", Name: "a", Repetition: 1, Unit: "Mbit/s", Samples: [][2]float64{{0, 1}, {10, 1}}, Marks: marks},
		{Plot: "p", Name: "a", Repetition: 2, Unit: "Mbit/s", Samples: [][2]float64{{0, 9}, {10, 9}}},
		{Plot: "p", Name: "a", Repetition: 3, Unit: "Mbit/s", Samples: [][2]float64{{0, 0}, {10, 0}}, Marks: marks},
	})[0]
}

// Words that would cover each other stand in rows of their own, the outer ones higher,
// so that no post crosses any.
func TestWordsCoverNothing(t *testing.T) {
	c := marked(Mark{1, "the first joins"}, Mark{2, "the second joins"}, Mark{8, "the first leaves"}, Mark{9, "the second leaves"})
	for class, want := range map[string][]int{"wide": {0, 1, 1, 0}, "narrow": {0, 1, 2, 0}} {
		for _, f := range frames {
			if f.class != class {
				continue
			}
			words := c.words(f)
			for i, w := range words {
				if w.left != (w.Seconds > 5) || w.from < 0 || w.to > f.width-beside {
					t.Errorf("%s: %+v", class, w)
				}
				for _, other := range words[:i] {
					if w.covers(other) {
						t.Errorf("%s: %q covers %q", class, w.Text, other.Text)
					}
				}
			}
			for i, seconds := range []float64{1, 2, 8, 9} {
				for _, w := range words {
					if w.Seconds == seconds && w.row > want[i] {
						t.Errorf("%s: %q is in row %d", class, w.Text, w.row)
					}
				}
			}
			if _, err := c.svg(f); err != nil {
				t.Error(err)
			}
		}
	}
}

// Marks of the typical repetition alone are drawn, and without any there is no row.
func TestWordsOfTheTypical(t *testing.T) {
	c := marked(Mark{5, "now"})
	if words := c.words(frames[0]); len(words) != 1 || rowsOf(words) != 1 {
		t.Errorf("%+v", words)
	}
	if words := marked().words(frames[0]); rowsOf(words) != 0 {
		t.Errorf("%+v", words)
	}
}
