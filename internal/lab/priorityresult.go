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
	l.lookBack("solo", "second_mbit", "the second workload alone had")
	l.claim(l.sharesAlike())
	l.claim(l.winnerTakesAll()...)
	l.claim(l.quick(), l.allFlips())
	l.result.About = &report.About{
		Title: "Two workloads and one line",
		Summary: fmt.Sprintf("Two local workloads, processes in cgroups of their own, send over a link with a rate: at the same priority, at different ones, and while the priority of one of them is changed in flight. Each offers at most %g times the line's rate.",
			headroom),
		Metrics: []report.Label{
			{Name: "first_mbit", Text: "First workload"},
			{Name: "second_mbit", Text: "Second workload"},
			{Name: "effect_ms", Text: "From the call of set until its class moves"},
			{Name: "flips_effective", Text: "Flips that took effect"},
		},
		Ratios: []report.Label{
			{Name: "first_share", Text: "same class: first / both"},
			{Name: "winner_over_solo", Text: "second: different class / solo"},
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

func (l *priorityLab) sharesAlike() report.Claim {
	text := fmt.Sprintf("In the same class each stream gets half of the line, within 3 points, where none offers more than %g times the line.", headroom)
	first := l.values("same_class", "first_mbit")
	both := slices.Clone(l.values("same_class", "second_mbit"))
	for i := range both {
		both[i] += first[i]
	}
	share, ok := l.ratio("first_share", first, both)
	if !ok {
		return report.Unproven(text, "no traffic arrived")
	}
	return report.Kept(text, share.Value >= 0.47 && share.Value <= 0.53, "the first one's share: "+spread(share)+
		"; without that bound two streams that meet in one FIFO keep whatever shares they began with, and in the eight FIFOs of a class of htb without fq_codel they meet 1 time in 8")
}

func (l *priorityLab) winnerTakesAll() []report.Claim {
	const wins = "In different classes the more urgent stream gets at least 99 % of what it gets alone."
	const loses = "The other one gets at most half a per cent of the line and the queue's floor."
	winner, ok := l.ratio("winner_over_solo", l.values("different_class", "second_mbit"), l.values("solo", "second_mbit"))
	if !ok {
		const why = "no traffic arrived"
		return []report.Claim{report.Unproven(wins, why), report.Unproven(loses, why)}
	}
	loser := report.Summarise("Mbit/s", l.values("different_class", "first_mbit"))
	guaranteed := float64(floor(l.classes, 4)) / 1e6
	// Half a per cent is 6 ms of the window: a process that is not scheduled for
	// so long does not use the line, and the other one may.
	allowed := guaranteed + float64(l.Rate)/1e6/200
	return []report.Claim{
		report.Kept(wins, winner.Value >= 0.99, spread(winner)),
		report.Kept(loses, loser.Median <= allowed, fmt.Sprintf("median %.3g, from %.3g to %.3g Mbit/s; the queue's floor is %.3g Mbit/s",
			loser.Median, loser.Min, loser.Max, guaranteed)),
	}
}

func (l *priorityLab) quick() report.Claim {
	const text = "A change takes effect on a running flow within 10 ms, in the median."
	var evidence []string
	kept := true
	for _, c := range []struct {
		arm, words string
		made       int
	}{
		{"live_raise", "live raise", l.Repetitions},
		{"flips", "flips", flips},
	} {
		m := report.Summarise("ms", l.values(c.arm, "effect_ms"))
		if m.N < c.made { // a change without effect took no time
			return report.Kept(text, false, fmt.Sprintf("%s: %d of %d changes had an effect within %s", c.words, m.N, c.made, patience))
		}
		kept = kept && m.Median <= 10
		evidence = append(evidence, fmt.Sprintf("%s: median %.2f, at most %.2f ms of %d", c.words, m.Median, m.Max, m.N))
	}
	return report.Kept(text, kept, strings.Join(evidence, "; "))
}

func (l *priorityLab) allFlips() report.Claim {
	effective := l.values("flips", "flips_effective")[0]
	return report.Kept(fmt.Sprintf("All of %d flips move the flow to the class of its new priority and empty the old one.", flips),
		effective == flips, fmt.Sprintf("%g of %d by the class counters", effective, flips))
}
