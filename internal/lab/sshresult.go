package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/report"
)

func (l *sshLab) draw(arm string, repetition int, c copied, rival traffic.Trace) {
	l.result.Series = append(l.result.Series, report.Series{
		Plot: "Copy to port 22", Name: arm, Arm: arm, Repetition: repetition, Unit: "Mbit/s",
		Samples: c.copy.Rates(c.start, c.start, c.end),
	})
	if arm == "alone" {
		return
	}
	zero := c.start.Add(-lead)
	series := report.Series{
		Plot: "Rival on port 5201", Name: arm, Arm: arm, Repetition: repetition, Unit: "Mbit/s",
		Samples: rival.Rates(zero, zero, c.end.Add(lead)),
	}
	if arm == "prioritised" {
		series.Marks = []report.Mark{{Seconds: lead.Seconds(), Text: "copy begins"}, {Seconds: c.end.Sub(zero).Seconds(), Text: "copy done"}}
	}
	l.result.Series = append(l.result.Series, series)
}

// conclude turns the samples of the ssh lab into arms, ratios and claims.
func (l *sshLab) conclude() {
	l.summarise(sshInfo.Arms...)
	slices.SortStableFunc(l.result.Series, func(a, b report.Series) int { return strings.Compare(a.Plot, b.Plot) })
	l.judge()
	l.result.About = &report.About{
		Title:   "A file copy over ssh on a full line",
		Summary: "Client, router and server. The router's line to the server is the bottleneck. A copy to port 22 runs alone, beside a bulk stream that fills the line, and beside it with priority 15 for port 22.",
		Metrics: []report.Label{
			{Name: "copy_seconds", Text: "Copy time"},
			{Name: "rival_mbit", Text: "Rival during the copy"},
			{Name: "rival_while_waiting_mbit", Text: "Rival while packets of the copy wait"},
			{Name: "keystroke_ms", Text: "Keystroke and echo, median"},
			// Of some forty keystrokes that is the 99th percentile.
			{Name: "keystroke_p99_ms", Text: "Keystroke and echo, slowest"},
		},
		Ratios: []report.Label{
			{Name: "full_over_alone", Text: "full / alone"},
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

// judge makes the claims. On a line that was not full none of them can be made.
func (l *sshLab) judge() {
	const slows = "A full line makes the copy at least 1.8 times as long."
	const holds = "With priority 15 the copy takes at most 1.05 times what it takes alone."
	seconds := func(arm string) []float64 { return l.values(arm, "copy_seconds") }
	full, _ := l.ratio("full_over_alone", seconds("full"), seconds("alone"))
	prioritised, _ := l.ratio("prioritised_over_alone", seconds("prioritised"), seconds("alone"))
	l.lookBack("alone", "copy_seconds", "the copy alone took")
	line := float64(l.Rate) / 1e6 * payload
	if before := report.Summarise("Mbit/s", l.before).Median; before < 0.9*line {
		why := fmt.Sprintf("the rival filled %.0f of %.0f Mbit/s only: the line was not full; a lower --rate may suit this machine", before, line)
		l.warn("%s", why)
		l.claim(report.Unproven(slows, why), report.Unproven(holds, why), report.Unproven(rests, why))
		return
	}
	l.claim(
		report.Kept(slows, full.Value >= 1.8, spread(full)),
		report.Kept(holds, prioritised.Value <= 1.05, spread(prioritised)+l.sent()),
		l.rests(),
	)
}

// What the contract promises is that nobody goes before a packet of the copy's
// that waits. The line while none waits is the rival's by right: while TCP
// starts, after the last byte, and on a busy machine whenever the sender is not
// scheduled. So the rival is judged by the queue, where both can be seen.
const rests = "While packets of the copy wait, the rival gets at most a hundredth of the line and the queue's floor."

func (l *sshLab) rests() report.Claim {
	watched := report.Summarise("", l.watched)
	if watched.N < l.Repetitions || watched.Median < leastWatched {
		return report.Unproven(rests, fmt.Sprintf("in %d of %d copies packets were seen to wait, for %.0f %% of the time: too little",
			watched.N, l.Repetitions, 100*watched.Median))
	}
	line := float64(l.Rate) / 1e6
	guaranteed := float64(floor(l.counters, 15)) / 1e6
	rival := report.Summarise("Mbit/s", l.values("prioritised", "rival_while_waiting_mbit"))
	return report.Kept(rests, rival.Median <= line/100+guaranteed,
		fmt.Sprintf("median %.2g %%, from %.2g to %.2g %% of the line, while packets waited for at least %.0f %% of the copy; the queue's floor is %.2g %%",
			100*rival.Median/line, 100*rival.Min/line, 100*rival.Max/line, 100*watched.Median, 100*guaranteed/line))
}

// leastWatched is the part of the copy for which it must be certain that packets
// of it waited.
const leastWatched = 0.2

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
