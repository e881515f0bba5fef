package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/report"
)

// What the lab sets out to prove of Weir.
const (
	costsNothing = "Under a limit that is not reached, Weir lets through at least 97 % of the small packets per second that pass without one."
	holdsLimit   = "Under a limit of Weir's, bulk TCP gets that limit within 1 % in the median, with one flow, with 32, and with 32 that understand ECN."
	losesNothing = "No segment of those flows is sent again."
	keepsLatency = "Beside those 32 flows, in the same limit, 99 of 100 requests are answered within 1.5 times what they take alone without a limit."
)

// judge makes the claims.
func (l *limitersLab) judge() {
	if why := l.absent["weir"]; why != "" {
		for _, text := range []string{costsNothing, holdsLimit, losesNothing, keepsLatency} {
			l.claim(report.Unproven(text, why))
		}
		l.claim(l.ifbCosts())
		return
	}
	l.claim(
		l.passes(),
		l.holds(),
		l.loses(),
		l.keeps(),
		l.ifbCosts(),
	)
}

// unsteady is how much what others are compared with may vary, the largest over the smallest, for the median to say
// anything where the true one may be on either side of a bound.
const unsteady = 1.25

// claimRatio judges a ratio by its median, if what it was divided by allows that.
func (l *limitersLab) claimRatio(text, name string, under *samples, kept func(float64) bool) report.Claim {
	r, ok := l.result.Ratios[name]
	if !ok {
		return report.Unproven(text, "nothing was measured")
	}
	evidence := spread(r)
	if base := report.Summarise(under.unit, under.values); base.Max > unsteady*base.Min && kept(r.Median.Low) != kept(r.Median.High) {
		return report.Unproven(text, fmt.Sprintf("%s; what it is compared with varied %.1f-fold by itself: run the lab again on a quiet host", evidence, base.Max/base.Min))
	}
	return report.Kept(text, kept(r.Value), evidence)
}

// passes judges what a limit costs. Where two lines alike are found to be as far apart as would make the other verdict, there is none.
func (l *limitersLab) passes() report.Claim {
	kept := func(value float64) bool { return value >= 0.97 }
	claim := l.claimRatio(costsNothing, "weir_over_none", l.samples["weir"]["pps_by_turns_none"], kept)
	limit, alike := l.result.Ratios["weir_over_none"], l.result.Ratios[noneOverNone]
	if alike.Value > 0 && claim.Kept != nil && kept(limit.Value) != kept(limit.Value/alike.Value) {
		claim = report.Unproven(costsNothing, claim.Evidence+"; two lines alike differ by more than decides this: run the lab again")
	}
	for _, other := range []struct{ ratio, words string }{
		{idleOverNone, "through a program that does nothing"},
		{askingOverNone, "through one that asks each packet's socket, and no more"},
		{noneOverNone, "over two lines alike"},
	} {
		if r, ok := l.result.Ratios[other.ratio]; ok {
			claim.Evidence += "; " + other.words + ": " + spread(r)
		}
	}
	return claim
}

func (l *limitersLab) holds() report.Claim {
	limit := float64(l.Rate) / 1e6
	kept := true
	var evidence []string
	for _, b := range bulks {
		if why := l.hardlyLimited(b); why != "" {
			return report.Unproven(holdsLimit, why)
		}
		m := report.Summarise("Mbit/s", l.values("weir", "mbit"+b.suffix))
		kept = kept && m.Median >= 0.99*limit && m.Median <= 1.01*limit
		evidence = append(evidence, fmt.Sprintf("with %s: median %.4g, from %.4g to %.4g %% of the limit",
			b, 100*m.Median/limit, 100*m.Min/limit, 100*m.Max/limit))
	}
	return report.Kept(holdsLimit, kept, strings.Join(evidence, "; "))
}

func (l *limitersLab) loses() report.Claim {
	for _, b := range bulks {
		if why := l.hardlyLimited(b); why != "" {
			return report.Unproven(losesNothing, why)
		}
	}
	again, _ := l.resent("weir")
	dropped := 0.0
	for _, b := range bulks {
		dropped += sum(l.values("weir", "limit_drops"+b.suffix))
	}
	return report.Kept(losesNothing, again == 0, fmt.Sprintf("%s; Weir's limit dropped %g", l.lost(), dropped))
}

func (l *limitersLab) keeps() report.Claim {
	if why := l.hardlyLimited(bulks[0]); why != "" {
		return report.Unproven(keepsLatency, why)
	}
	claim := l.claimRatio(keepsLatency, "weir_rr_over_idle", l.samples["weir"]["rr_alone_p99_ms"], func(value float64) bool { return value <= 1.5 })
	if _, ok := l.result.Ratios["weir_rr_over_idle"]; ok {
		claim.Evidence += fmt.Sprintf("; %d requests each time", requests(bulks[0].windows).N()) + l.stolen()
		if beside := l.values("none", "rr_p99_ms_offered"); len(beside) > 0 {
			all := report.Summarise("ms", beside)
			claim.Evidence += fmt.Sprintf("; without a limit, beside as many flows that offer as much by themselves: median %.3g, from %.3g to %.3g ms",
				all.Median, all.Min, all.Max)
		}
	}
	return claim
}

// stolen words what the host of this machine kept of its CPUs in the windows of those requests, and in the one in which they
// waited longest.
func (l *limitersLab) stolen() string {
	took, steal := l.values("weir", "rr_p99_ms"), l.values("weir", "rr_steal_ms")
	all := report.Summarise("ms", steal)
	if all.Max == 0 {
		return ""
	}
	longest := slices.Index(took, slices.Max(took))
	return fmt.Sprintf("; of its CPUs' time the host kept %.0f ms in the median, %.0f at most, and %.0f where they took longest, %.3g ms",
		all.Median, all.Max, steal[longest], took[longest])
}

// hardlyLimited says why flows tell nothing of the limit: without one they are hardly
// faster. "" where they are.
func (l *limitersLab) hardlyLimited(b bulk) string {
	limit := float64(l.Rate) / 1e6
	free := report.Summarise("Mbit/s", l.values("none", "mbit"+b.suffix))
	if free.Median >= 1.25*limit {
		return ""
	}
	return fmt.Sprintf("without a limit flows, %s, carry %.0f Mbit/s only, too little for a limit of %.0f; a lower --rate may suit this machine", b, free.Median, limit)
}

// resent is how many segments of an arm were sent again, in all its runs, and how many of them had arrived.
func (l *limitersLab) resent(arm string) (segments, needless float64) {
	for _, b := range bulks {
		segments += sum(l.values(arm, "retransmits"+b.suffix))
		needless += sum(l.values(arm, "retransmits_needless"+b.suffix))
	}
	return segments, needless
}

// lost words what was sent again in all arms.
func (l *limitersLab) lost() string {
	var words []string
	for _, arm := range limitersInfo.Arms {
		if l.absent[arm] == "" {
			again, needless := l.resent(arm)
			words = append(words, fmt.Sprintf("%s %g", arm, again))
			if again > 0 {
				words[len(words)-1] += fmt.Sprintf(" (%g had arrived)", needless)
			}
		}
	}
	return "segments sent again in all runs: " + strings.Join(words, ", ")
}

// ifbCosts is what was published, as a sentence: how much depends on the machine.
func (l *limitersLab) ifbCosts() report.Claim {
	const text = "A limit behind an ifb costs packets per second even if it is not reached."
	if why := l.absent["ifb_htb"]; why != "" {
		return report.Unproven(text, why)
	}
	r, ok := l.result.Ratios["ifb_htb_over_none"]
	if !ok {
		return report.Unproven(text, "nothing was measured")
	}
	evidence := fmt.Sprintf("%s; published: %.2f", spread(r), publishedIfb)
	if !r.Differs() {
		return report.Unproven(text, evidence)
	}
	return report.Kept(text, r.Value < 1, evidence)
}
