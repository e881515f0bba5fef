package report

import (
	"cmp"
	"slices"
)

// A chart is the series that share one pair of axes.
type chart struct {
	title  string
	unit   string
	legend []key // in order of appearance
	lines  []Series
}

// A key is a name in the legend and its number among all the names of a page,
// which gives it one colour and one dash in all charts.
type key struct {
	name   string
	number int
}

// charts groups series by the plot that they name, in order of appearance.
func charts(series []Series) []chart {
	var all []chart
	numbers := map[string]int{}
	for _, s := range series {
		if len(s.Samples) == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(c chart) bool { return c.title == s.Plot })
		if i < 0 {
			i, all = len(all), append(all, chart{title: s.Plot, unit: s.Unit})
		}
		if _, known := numbers[s.Name]; !known {
			numbers[s.Name] = len(numbers)
		}
		if k := (key{s.Name, numbers[s.Name]}); !slices.Contains(all[i].legend, k) {
			all[i].legend = append(all[i].legend, k)
		}
		all[i].lines = append(all[i].lines, s)
	}
	return all
}

// typical returns the repetition that is drawn in full: the middle one by what
// it carried. The others stay visible behind it.
func (c chart) typical(name string) int {
	type load struct {
		repetition int
		sum        float64
	}
	var loads []load
	for _, s := range c.lines {
		if s.Name == name {
			sum := 0.0
			for _, sample := range s.Samples {
				sum += sample[1]
			}
			loads = append(loads, load{s.Repetition, sum / float64(len(s.Samples))})
		}
	}
	slices.SortStableFunc(loads, func(a, b load) int { return cmp.Compare(a.sum, b.sum) })
	return loads[len(loads)/2].repetition
}

// drawing is the order in which the lines are drawn: the typical ones above the
// others, and those later in the legend above the earlier ones, whose dashes
// let these show through.
func (c chart) drawing() []Series {
	lines := slices.Clone(c.lines)
	height := func(s Series) int {
		if s.Repetition == c.typical(s.Name) {
			return 1 + c.number(s.Name)
		}
		return 0
	}
	slices.SortStableFunc(lines, func(a, b Series) int { return height(a) - height(b) })
	return lines
}
