package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/report"
)

func (l *sshLab) draw(arm string, repetition int, copied, rival traffic.Trace, start, end time.Time) {
	l.result.Series = append(l.result.Series, report.Series{
		Plot: "Copy to port 22", Name: arm, Arm: arm, Repetition: repetition, Unit: "Mbit/s",
		Samples: copied.Rates(start, start, end),
	})
	if arm == "alone" {
		return
	}
	zero := start.Add(-lead)
	series := report.Series{
		Plot: "Rival on port 5201", Name: arm, Arm: arm, Repetition: repetition, Unit: "Mbit/s",
		Samples: rival.Rates(zero, zero, end.Add(lead)),
	}
	if arm == "prioritised" {
		series.Marks = []report.Mark{{Seconds: lead.Seconds(), Text: "copy begins"}, {Seconds: end.Sub(zero).Seconds(), Text: "copy done"}}
	}
	l.result.Series = append(l.result.Series, series)
}

func (l *sshLab) conclude() {
	l.summarise(sshInfo.Arms...)
	slices.SortStableFunc(l.result.Series, func(a, b report.Series) int { return strings.Compare(a.Plot, b.Plot) })
	seconds := func(arm string) []float64 { return l.values(arm, "copy_seconds") }
	full, _ := l.ratio("full_over_alone", seconds("full"), seconds("alone"))
	prioritised, _ := l.ratio("prioritised_over_alone", seconds("prioritised"), seconds("alone"))
	n := l.Repetitions

	const slows = "A full line makes the copy at least 1.8 times as long."
	const holds = "With priority 15 the copy takes at most 1.05 times what it takes alone."
	const rests = "While it lasts the rival gets less than a twentieth of the line."
	busy := report.Summarise("Mbit/s", l.before)
	if line := float64(l.Rate) / 1e6 * payload; busy.Median < 0.9*line {
		why := fmt.Sprintf("the rival filled %.0f of %.0f Mbit/s only: the line was not full; a lower --rate may suit this machine", busy.Median, line)
		l.warn("%s", why)
		l.claim(report.Unproven(slows, why))
		l.claim(report.Unproven(holds, why))
		l.claim(report.Unproven(rests, why))
	} else {
		rival := l.values("prioritised", "rival_mbit")
		top, rate := report.Summarise("Mbit/s", rival), float64(l.Rate)/1e6
		l.claim(report.Kept(slows, full.Value >= 1.8, spread(full, n)))
		l.claim(report.Kept(holds, prioritised.Value <= 1.05, spread(prioritised, n)+l.sent()))
		l.claim(report.Kept(rests, top.Median < rate/20,
			fmt.Sprintf("median %.2g %%, from %.2g to %.2g %% of the line; the queue guarantees it %.2g %%",
				100*top.Median/rate, 100*top.Min/rate, 100*top.Max/rate, 100*float64(floor(l.counters, 15))/float64(l.Rate))))
	}
	l.result.About = &report.About{
		Title:   "A file copy over ssh on a full line",
		Summary: "Client, router and server. The router's line to the server is the bottleneck. A copy to port 22 runs alone, beside a bulk stream that fills the line, and beside it with priority 15 for port 22.",
		Metrics: []report.Label{
			{Name: "copy_seconds", Text: "Copy time"},
			{Name: "rival_mbit", Text: "Rival during the copy"},
			{Name: "keystroke_ms", Text: "Keystroke and echo, median"},
			{Name: "keystroke_p99_ms", Text: "Keystroke and echo, 99th percentile"},
		},
		Ratios: []report.Label{
			{Name: "full_over_alone", Text: "full line / alone"},
			{Name: "prioritised_over_alone", Text: "prioritised / alone"},
		},
	}
	const source = "scp of about 700 MB through a router on a 1 Gbit/s line beside iperf3, strict classes of mqprio in hardware"
	l.result.Published = []report.Published{
		{Arm: "alone", Metric: "copy_seconds", Value: 7, Unit: "s", Source: source},
		{Arm: "full", Metric: "copy_seconds", Value: 14, Unit: "s", Source: source},
		{Arm: "prioritised", Metric: "copy_seconds", Value: 7, Unit: "s", Source: source},
		{Arm: "prioritised", Metric: "rival_mbit", Value: 0, Unit: "Mbit/s", Source: source},
		{Metric: "full_over_alone", Value: 2, Source: source},
		{Metric: "prioritised_over_alone", Value: 1, Source: source},
	}
}

// sent words what the classes carried in the last prioritised run.
func (l *sshLab) sent() string {
	words := ""
	for _, c := range l.counters {
		if c.Bytes < 50_000 {
			continue // would read 0.0
		}
		words += fmt.Sprintf("; class %d sent %.1f MB", c.Class, float64(c.Bytes)/1e6)
	}
	return words
}
