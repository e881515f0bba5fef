package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/report"
)

// conclude turns the samples of the priority lab into arms, ratios and claims.
func (l *priorityLab) conclude() {
	l.summarise(priorityInfo.Arms...)
	slices.SortStableFunc(l.result.Series, func(a, b report.Series) int {
		return slices.Index(priorityInfo.Arms, a.Arm) - slices.Index(priorityInfo.Arms, b.Arm)
	})
	l.claim(l.sharesAlike())
	l.claims(l.winnerTakesAll())
	l.claim(l.quick())
	l.claim(l.allFlips())
	l.result.About = &report.About{
		Title:   "Two workloads and one line",
		Summary: "Two local workloads, processes in cgroups of their own, send over a link with a rate: at the same priority, at different ones, and while the priority of one of them is changed in flight. Each offers at most 1.25 times the line's rate.",
		Metrics: []report.Label{
			{Name: "first_mbit", Text: "First workload"},
			{Name: "second_mbit", Text: "Second workload"},
			{Name: "effect_ms", Text: "From the call of set until its class moves"},
			{Name: "flips_effective", Text: "Flips that took effect"},
		},
		Ratios: []report.Label{
			{Name: "first_share", Text: "same class: first / both"},
			{Name: "winner_over_solo", Text: "different classes: winner / alone"},
		},
	}
	const source = "two iperf3 streams on a 1 Gbit/s link, strict classes of mqprio in hardware"
	l.result.Published = []report.Published{
		{Arm: "same_class", Metric: "first_mbit", Value: 471, Unit: "Mbit/s", Source: source},
		{Arm: "same_class", Metric: "second_mbit", Value: 471, Unit: "Mbit/s", Source: source},
		{Arm: "different_class", Metric: "first_mbit", Value: 0, Unit: "Mbit/s", Source: source},
		{Arm: "different_class", Metric: "second_mbit", Value: 942, Unit: "Mbit/s", Source: source},
		{Metric: "first_share", Value: 0.5, Source: source},
		{Metric: "winner_over_solo", Value: 1, Source: source},
	}
}

func (l *priorityLab) claims(all []report.Claim) { l.result.Claims = append(l.result.Claims, all...) }

func (l *priorityLab) sharesAlike() report.Claim {
	const text = "In the same class each stream gets half of the line, within 3 points."
	first := l.values("same_class", "first_mbit")
	both := slices.Clone(l.values("same_class", "second_mbit"))
	for i := range both {
		both[i] += first[i]
	}
	share, ok := l.ratio("first_share", first, both)
	if !ok {
		return report.Unproven(text, "no traffic arrived")
	}
	return report.Kept(text, share.Value >= 0.47 && share.Value <= 0.53,
		"the first one's share: "+spread(share, l.Repetitions))
}

func (l *priorityLab) winnerTakesAll() []report.Claim {
	const wins = "In different classes the more urgent stream gets at least 99 % of what it gets alone."
	const loses = "The other one gets no more than the queue guarantees it."
	winner, ok := l.ratio("winner_over_solo", l.values("different_class", "second_mbit"), l.values("solo", "second_mbit"))
	if !ok {
		const why = "no traffic arrived"
		return []report.Claim{report.Unproven(wins, why), report.Unproven(loses, why)}
	}
	loser := report.Summarise("Mbit/s", l.values("different_class", "first_mbit"))
	guaranteed := float64(floor(l.classes, 4)) / 1e6
	// A half per cent of the line is what a window of two seconds can not tell
	// from nothing: packets that waited when it began.
	allowed := guaranteed + float64(l.Rate)/1e6/200
	return []report.Claim{
		report.Kept(wins, winner.Value >= 0.99, spread(winner, l.Repetitions)),
		report.Kept(loses, loser.Median <= allowed, fmt.Sprintf("median %.3g, at most %.3g Mbit/s; its class is guaranteed %.3g Mbit/s",
			loser.Median, loser.Max, guaranteed)),
	}
}

func (l *priorityLab) quick() report.Claim {
	text := "A change takes effect on a running flow within 10 ms."
	var evidence []string
	kept := true
	for _, arm := range []string{"live_raise", "flips"} {
		m := report.Summarise("ms", l.values(arm, "effect_ms"))
		if m.N == 0 {
			return report.Kept(text, false, plain(arm)+": no change had an effect")
		}
		kept = kept && m.Median <= 10
		evidence = append(evidence, fmt.Sprintf("%s: median %.2f, at most %.2f ms of %d", plain(arm), m.Median, m.Max, m.N))
	}
	return report.Kept(text, kept, strings.Join(evidence, "; "))
}

func (l *priorityLab) allFlips() report.Claim {
	effective := l.values("flips", "flips_effective")[0]
	return report.Kept(fmt.Sprintf("All of %d flips move the flow to the class of its new priority and empty the old one.", flips),
		effective == flips, fmt.Sprintf("%g of %d by the class counters", effective, flips))
}

func plain(arm string) string { return strings.ReplaceAll(arm, "_", " ") }
