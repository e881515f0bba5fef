package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/report"
)

// The packet rate through a program that does nothing, and through one that asks each packet's socket, over that without any; and
// over one of two lines without any, over that over the other, of which the first has its turns where those with a program have them.
const (
	idleOverNone   = "idle_program_over_none"
	askingOverNone = "asking_program_over_none"
	noneOverNone   = "none_over_none"
)

// publishedIfb is the packet rate through an ifb over that without one.
const publishedIfb = 0.36

// conclude turns the samples of the limiters lab into arms, ratios and claims.
func (l *limitersLab) conclude() {
	l.summarise(limitersInfo.Arms...)
	l.addAbsent()
	slices.SortStableFunc(l.result.Series, func(a, b report.Series) int { return strings.Compare(a.Plot, b.Plot) })
	l.ratio(idleOverNone, l.values("none", "pps_by_turns"), l.values("none", "pps_by_turns_none"))
	l.ratio(askingOverNone, l.values("none", "pps_by_turns_asking"), l.values("none", "pps_by_turns_none_asking"))
	l.ratio(noneOverNone, l.values("none", "pps_by_turns_elsewhere"), l.values("none", "pps_by_turns_none_elsewhere"))
	for _, arm := range limitersInfo.Arms[1:] {
		l.ratio(arm+"_over_none", l.values(arm, "pps_by_turns"), l.values(arm, "pps_by_turns_none"))
		// Not over its own requests alone: what an arm adds to each would cancel out.
		l.ratio(arm+"_rr_over_idle", l.values(arm, "rr_p99_ms"), l.values(arm, "rr_alone_p99_ms"))
	}
	if len(l.values("none", "softirq_ns_per_packet")) == 0 {
		l.warn("this kernel does not account the time of softirqs; all CPU time for each packet has it in it")
	}
	if l.leaf == hosts.OneFIFO {
		l.warn("arms ifb_htb and htb: %s", l.htb())
	}
	l.judge()
	l.describe()
}

// htb words what HTB is on this kernel: much of what its limit does to traffic is
// its leaf's doing.
func (l *limitersLab) htb() string {
	switch l.leaf {
	case "":
		return "no HTB"
	case hosts.OneFIFO:
		return "HTB over one FIFO: this kernel has no fq_codel"
	}
	return "HTB over " + string(l.leaf)
}

// words names an arm, and its leaf or method where it has one.
func (l *limitersLab) words(arm string) string {
	if l.leaf != "" && l.absent[arm] == "" && (arm == "htb" || arm == "ifb_htb") {
		return fmt.Sprintf("%s (over %s)", arm, l.leaf)
	}
	if how, ok := weirs[arm]; ok {
		return fmt.Sprintf("%s (method: %s)", arm, how.method)
	}
	return arm
}

// addAbsent puts the arms that this kernel lacks where they belong, without a
// sample, and says why.
func (l *limitersLab) addAbsent() {
	for _, arm := range limitersInfo.Arms {
		why := l.absent[arm]
		if why == "" {
			continue
		}
		l.warn("arm %s is absent: %s", arm, why)
		l.result.Arms = append(l.result.Arms, report.Arm{Name: arm, Metrics: map[string]report.Metric{"pps": report.Summarise("packets/s", nil)}})
	}
	slices.SortFunc(l.result.Arms, func(a, b report.Arm) int {
		return slices.Index(limitersInfo.Arms, a.Name) - slices.Index(limitersInfo.Arms, b.Name)
	})
}

func (l *limitersLab) describe() {
	l.result.Environment.Bottleneck = "none: a veth pair without a queue, and what each arm puts there; " + l.htb()
	l.result.About = &report.About{
		Title: "What a limit costs, and what it does to traffic",
		Summary: fmt.Sprintf("A workload sends over a veth pair without a queue, held to a limit by each means in turn. First UDP of %d bytes from %d sockets, under limits of %s, %s and %s: 10, 1.25 and 0.25 times what it offers without one; and once more over two lines by turns of %s, one with the first of these limits, or a program that does nothing or only asks each packet's socket, and one without, since two floods of one host differ; and so that what is found is known to be of these, over two lines with neither. Then 32 TCP flows, one, and 32 that understand ECN, under a limit of %s, and beside them a request of %d bytes every %s, timed from when it is due; below a limit of Weir's the first of these are there %d times in each repetition, each time between requests alone without it. Of HTB there is: %s. Weir holds the limit in two arms: edt gives departure times over fq, weir paces. CPU time is that of the whole host, from /proc/stat, where most kernels sample softirqs once a tick; retransmits are TCP's own count, and so is how many of them had arrived already (D-SACK): such are sent when an answer is late, because the host did something else for some milliseconds, say. Steal, where this is a virtual machine whose host tells, is what that kept of its CPUs.",
			datagram, floodSockets, l.limits[0], l.limits[1], l.limits[2], turns.Slice, l.Rate, requests(1).Size, requests(1).Every, requestTurns, l.htb()),
		Metrics: []report.Label{
			{Name: "pps", Text: "Small packets, limit far above"},
			{Name: "pps_by_turns", Text: "By turns, line with the limit; none: an idle program"},
			{Name: "pps_by_turns_none", Text: "By turns, line without it"},
			{Name: "pps_by_turns_asking", Text: "By turns, a program that asks the socket"},
			{Name: "pps_by_turns_none_asking", Text: "By turns, line without that program"},
			{Name: "pps_by_turns_elsewhere", Text: "By turns, a line where nothing stands"},
			{Name: "pps_by_turns_none_elsewhere", Text: "By turns, the other such line"},
			{Name: "pps_near", Text: "Small packets, limit just above"},
			{Name: "pps_below", Text: "Small packets, limit well below"},
			{Name: "used_below", Text: "Of the limit well below, used"},
			{Name: "offered_below", Text: "Small packets offered, limit well below"},
			{Name: "drops", Text: "Dropped, limit far above"},
			{Name: "drops_near", Text: "Dropped, limit just above"},
			{Name: "drops_below", Text: "Dropped, limit well below"},
			{Name: "softirq_ns_per_packet", Text: "Softirqs' CPU time a packet, limit far above"},
			{Name: "cpu_ns_per_packet", Text: "All CPU time a packet, limit far above"},
			{Name: "mbit", Text: "32 TCP flows, bytes on the wire"},
			{Name: "mbit_1", Text: "One TCP flow, bytes on the wire"},
			{Name: "mbit_ecn", Text: "32 TCP flows with ECN, bytes on the wire"},
			{Name: "retransmits", Text: "Retransmits of 32 flows"},
			{Name: "retransmits_1", Text: "Retransmits of one flow"},
			{Name: "retransmits_ecn", Text: "Retransmits of 32 flows with ECN"},
			{Name: "retransmits_needless", Text: "Of 32 flows' what had arrived, as the receiver says"},
			{Name: "retransmits_needless_1", Text: "Of one flow's"},
			{Name: "retransmits_needless_ecn", Text: "Of those of 32 flows with ECN"},
			{Name: "limit_drops", Text: "Packets of 32 flows that the limit dropped, by Weir's count"},
			{Name: "limit_drops_1", Text: "The same of one flow"},
			{Name: "limit_drops_ecn", Text: "The same of 32 flows with ECN"},
			{Name: "marks_ecn", Text: "Packets of theirs that arrive with a mark of congestion"},
			{Name: "marks", Text: "The same of 32 flows without ECN"},
			{Name: "marks_1", Text: "The same of one flow without ECN"},
			{Name: "rr_idle_p99_ms", Text: fmt.Sprintf("Request and answer alone, 99 %% of %d", requests(1).N())},
			{Name: "rr_alone_p99_ms", Text: fmt.Sprintf("The same without the limit, mean of %d right before and %d right after what follows", requests(1).N(), requests(1).N())},
			{Name: "rr_p99_ms_offered", Text: fmt.Sprintf("Beside 32 flows that offer no more than the limit by themselves, without one, 99 %% of %d", requests(bulks[0].windows).N())},
			{Name: "mbit_offered", Text: "Those flows, bytes on the wire"},
			{Name: "rr_p99_ms", Text: fmt.Sprintf("Beside 32 flows in the same limit, 99 %% of %d", requests(bulks[0].windows).N())},
			{Name: "rr_steal_ms", Text: "CPU time that the machine's host kept meanwhile (steal)"},
			{Name: "rr_p99_ms_1", Text: fmt.Sprintf("Beside one flow in the same limit, 99 %% of %d", requests(bulks[1].windows).N())},
			{Name: "rr_steal_ms_1", Text: "The same beside one flow"},
			{Name: "rr_p99_ms_ecn", Text: fmt.Sprintf("Beside 32 flows with ECN in the same limit, 99 %% of %d", requests(bulks[2].windows).N())},
			{Name: "rr_steal_ms_ecn", Text: "The same beside 32 flows with ECN"},
		},
	}
	l.result.About.Ratios = append(l.result.About.Ratios,
		report.Label{Name: idleOverNone, Text: "packets: a program that does nothing / none"},
		report.Label{Name: askingOverNone, Text: "packets: one that asks each packet's socket / none"},
		report.Label{Name: noneOverNone, Text: "packets: none / none, as much apart as two lines alike are found to be"})
	for _, arm := range limitersInfo.Arms[1:] {
		l.result.About.Ratios = append(l.result.About.Ratios, report.Label{Name: arm + "_over_none", Text: "packets: " + l.words(arm) + " / none"})
	}
	for _, arm := range limitersInfo.Arms[1:] {
		l.result.About.Ratios = append(l.result.About.Ratios, report.Label{Name: arm + "_rr_over_idle", Text: "requests: " + l.words(arm) + " beside 32 flows / alone without a limit"})
	}
	const source = "UDP of iperf out of a container, 2017: its veth redirected to an ifb with HTB at 10 Gbit/s, far above the load"
	l.result.Published = []report.Published{
		{Arm: "none", Metric: "pps", Value: 1_100_000, Unit: "packets/s", Source: source},
		{Arm: "ifb_htb", Metric: "pps", Value: 400_000, Unit: "packets/s", Source: source},
		{Metric: "ifb_htb_over_none", Value: publishedIfb, Source: source},
		{Arm: "edt", Metric: "rr_p99_ms", Value: 2247, Unit: "ms", Source: "TCP_RR beside 128 flows below 100 Mbit/s, departure times as Cilium shipped them (its pull request 33220, which marks: 3.1 ms)"},
	}
}

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
