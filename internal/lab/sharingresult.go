package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-net/weir/internal/report"
)

var sharingPlots = map[string]string{
	"none": "Without mins: more flows have more",
	"weir": "With mins: small has at least 20 %, middle 30 %, large 50 %",
}

// conclude turns the samples of the sharing lab into arms, ratios and claims.
func (l *sharingLab) conclude() {
	l.summarise(sharingInfo.Arms...)
	slices.SortStableFunc(l.result.Series, func(a, b report.Series) int {
		return slices.Index(sharingInfo.Arms, a.Arm) - slices.Index(sharingInfo.Arms, b.Arm)
	})
	l.lookBack("none", "line_used_by_large", "without mins the large workload alone used")
	l.describe()
	for _, arm := range sharingInfo.Arms {
		for who, w := range sharers {
			name := arm + "_" + w.name + "_over_min"
			mbit := l.values(arm, w.name+whileAllSend)
			l.ratio(name, mbit, slices.Repeat([]float64{l.promised(who)}, len(mbit)))
			l.result.About.Ratios = append(l.result.About.Ratios, report.Label{Name: name, Text: armWords[arm] + ": " + w.name + " / its min"})
		}
	}
	l.judge()
}

var armWords = map[string]string{"none": "without mins", "weir": "with mins"}

func (l *sharingLab) describe() {
	about := &report.About{Title: "Three workloads share a line"}
	var senders []string
	for who, w := range sharers {
		senders = append(senders, fmt.Sprintf("%s with %s and a min of %d %%", w.name, streams(w.flows), w.min))
		about.Metrics = append(about.Metrics, report.Label{
			Name: w.name + whileAllSend, Text: fmt.Sprintf("%s while all three send; its min is %.4g Mbit/s", w.name, l.promised(who)),
		})
	}
	for _, i := range joins {
		w := sharers[script[i].who]
		about.Metrics = append(about.Metrics, report.Label{
			Name: w.name + "_join_ms", Text: fmt.Sprintf("%s joins: until it has, and keeps, %.0f %% of its min", w.name, 100*joined),
		})
	}
	for _, scene := range script {
		about.Metrics = append(about.Metrics, report.Label{Name: scene.metric, Text: "Use of the line: " + scene.words})
	}
	about.Metrics = append(about.Metrics,
		report.Label{Name: "middle_beside_flood_mbit", Text: "middle beside a UDP flood of small's"},
		report.Label{Name: "large_beside_flood_mbit", Text: "large beside a UDP flood of small's"},
		report.Label{Name: "flood_mbit", Text: "The flood itself, as it arrives"},
		report.Label{Name: "flood_offered_mbit", Text: "What the kernel takes of the flood"},
	)
	about.Summary = fmt.Sprintf("Three local workloads of equal priority, processes in cgroups of their own, join and leave one line: %s. Without mins the flows share it; with mins each has its part when it wants it, and what is idle goes to the others. Rates are whole frames on the line, %d bytes for each %d that TCP carries, as they arrive.",
		strings.Join(senders, ", "), 1514, segment)
	l.result.About = about
}

func streams(n int) string {
	if n == 1 {
		return "one TCP flow"
	}
	return fmt.Sprintf("%d TCP flows", n)
}

// What the lab sets out to prove.
const (
	hasMin    = "While all three send, each has at least 98 % of its min."
	lineFull  = "With mins the line is full, at least 97 % of it, whoever is there, and while they join and leave."
	floodHeld = "A UDP flood of one workload leaves the others at least 98 % of their mins."
	mostFlows = "Without mins the large workload, with one flow beside ten, has less than half of what its min would be."
)

func (l *sharingLab) judge() {
	l.claim(l.hasMin(), l.joinsSoon(), l.lineFull(), l.floodHeld(), l.mostFlows())
}

// slow says why nothing can be told of how the line is divided: without mins it was not
// full; "" where it was.
func (l *sharingLab) slow() string {
	if use := report.Summarise("%", l.values("none", script[busy].metric)); use.Median < 90 {
		return fmt.Sprintf("without mins the three used %.0f %% of the line only: it was not full; a lower --rate may suit this machine", use.Median)
	}
	return ""
}

func (l *sharingLab) hasMin() report.Claim {
	return l.keepsMins(hasMin, whileAllSend, small, middle, large)
}

// keepsMins judges that some workloads have what they are promised.
func (l *sharingLab) keepsMins(text, metric string, some ...int) report.Claim {
	if why := l.slow(); why != "" {
		return report.Unproven(text, why)
	}
	kept := true
	var evidence []string
	for _, who := range some {
		m := report.Summarise("Mbit/s", l.values("weir", sharers[who].name+metric))
		kept = kept && m.Median >= 0.98*l.promised(who)
		evidence = append(evidence, fmt.Sprintf("%s: median %.4g, from %.4g to %.4g of %.4g Mbit/s", sharers[who].name, m.Median, m.Min, m.Max, l.promised(who)))
	}
	return report.Kept(text, kept, strings.Join(evidence, "; "))
}

// joinsWithin is how soon a workload is to have joined: a process has to be
// scheduled, and there have to be frames enough to tell.
func (l *sharingLab) joinsWithin() time.Duration {
	return max(50*time.Millisecond, 2*l.joinWindow(middle))
}

func (l *sharingLab) joinsSoon() report.Claim {
	within := l.joinsWithin()
	text := fmt.Sprintf("A workload that joins a full line has, and keeps, %.0f %% of its min within %.0f ms.", 100*joined, within.Seconds()*1e3)
	if why := l.slow(); why != "" {
		return report.Unproven(text, why)
	}
	kept := true
	var evidence, without []string
	for _, i := range joins {
		name := sharers[script[i].who].name
		m := report.Summarise("ms", l.values("weir", name+"_join_ms"))
		kept = kept && m.N == l.Repetitions && m.Median <= within.Seconds()*1e3
		evidence = append(evidence, fmt.Sprintf("%s: median %.3g, at most %.3g ms, in %d of %d joins", name, m.Median, m.Max, m.N, l.Repetitions))
		without = append(without, fmt.Sprintf("%s in %d", name, len(l.values("none", name+"_join_ms"))))
	}
	return report.Kept(text, kept, fmt.Sprintf("%s; %d frames at that rate have to pass before it can be told; without mins %s",
		strings.Join(evidence, "; "), joinFrames, strings.Join(without, ", ")))
}

func (l *sharingLab) lineFull() report.Claim {
	if why := l.slow(); why != "" {
		return report.Unproven(lineFull, why)
	}
	kept := true
	var evidence []string
	for _, scene := range script {
		use := report.Summarise("%", l.values("weir", scene.metric))
		kept = kept && use.Median >= 97
		evidence = append(evidence, fmt.Sprintf("%s: %.4g %% (%.4g to %.4g)", scene.words, use.Median, use.Min, use.Max))
	}
	return report.Kept(lineFull, kept, strings.Join(evidence, "; "))
}

// floodHeld can be told only of a flood that would take more than its min.
func (l *sharingLab) floodHeld() report.Claim {
	free := report.Summarise("Mbit/s", l.values("none", "flood_mbit"))
	if free.Median <= l.promised(small) {
		return report.Unproven(floodHeld, fmt.Sprintf("without mins it has %.4g Mbit/s: that is none", free.Median))
	}
	claim := l.keepsMins(floodHeld, "_beside_flood_mbit", middle, large)
	if claim.Kept != nil {
		claim.Evidence += fmt.Sprintf("; without mins the flood has %.4g Mbit/s", free.Median)
	}
	return claim
}

func (l *sharingLab) mostFlows() report.Claim {
	if why := l.slow(); why != "" {
		return report.Unproven(mostFlows, why)
	}
	r := l.result.Ratios["none_large_over_min"]
	return report.Kept(mostFlows, r.Value < 0.5, "large / its min: "+spread(r))
}
