package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

// conclude turns the samples of the rates lab into arms and claims.
func (l *ratesLab) conclude() {
	l.summarise(l.arms...)
	l.result.Environment.Bottleneck = "none: veth pairs without a queue, one for each rate"
	l.result.Environment.Rung = "pace"
	l.describe()
	for _, arm := range pacedArms {
		l.claim(l.delivers(arm))
	}
	l.claim(l.datagramsReceived(), l.streamsReceived())
	for _, arm := range []string{ofAnswers, ofClasses} {
		if slices.Contains(l.arms, arm) {
			l.claim(l.delivers(arm))
		}
	}
	l.claim(l.fair(), l.losesNothing(), l.settles(), l.isSteady())
}

// names are the metrics of all rates that begin with a word, each with what follows it in words.
func (l *ratesLab) names(word string, kinds ...rateKind) (all []report.Label) {
	for i := range l.rates {
		for _, kind := range kinds {
			all = append(all, report.Label{Name: word + kind.name + "_" + l.rateName(i), Text: fmt.Sprintf("%s, %s", kind.words, l.rateWords(i))})
		}
	}
	return all
}

// rateWords is a rate for a reader.
func (l *ratesLab) rateWords(i int) string {
	if l.rates[i] == fastest {
		return "the fastest"
	}
	return rateWords(l.rates[i])
}

// streaming are the kinds that are TCP.
var streaming = rateKinds[:2]

// many is the kind of several streams.
var many = rateKinds[1:2]

func (l *ratesLab) describe() {
	about := &report.About{
		Title: "What gets through a limit",
		Summary: fmt.Sprintf("One sender and one receiver, processes in cgroups and network namespaces of their own, with a wire without a queue for each rate. The limit is in turn the egress of the workload that sends, the ingress of the link by which it comes (as a container's traffic does at the host's end of its veth), and the ingress of the workload that receives: by windows and a bucket, where the kernel has fq with what it answers waiting in one, and where it has htb with what it acknowledges waiting in a class of Weir's own. What got through is what the receiver's sockets got, as bytes on the wire with Ethernet headers, in %s that begin when each flow has had time for twenty segments, or of what is received for 64 KiB, and %s more. The fastest limit is what passes without one, a quarter less again and again until every %s of such %s are within %d %% of it. Before that it is asked what TCP gets without a limit, and below one of %s. UDP is offered at up to three times the limit, in full frames. CPU time is what the whole host spends in those, sender, receiver and lab included. Of 32 flows %d stop after that. Settled is when every %s is within 5 %% of the limit for the rest of a second, after flows start and after they stop; highest is the most of any %s from %s on; both where each flow sends a frame every 10 ms or oftener. A CPU is away where it runs nothing of this host for a millisecond: another machine has it, or its kernel lets no process run. When limits have settled, and the highest, are given once more with no CPU away: without each %s in which one was for %s or more, for the highest for %s. What is claimed is of all, in each run.",
			l.window, rateSettle, rateSpan, l.window, mayBeAbove, rateWords(policy.MaxEgress), many[0].streams-stays, rateSpan, rateSpan, soon, rateSpan, rateSpan*mayBeOff/100, rateSpan*mayBeAbove/100),
	}
	add := func(word, text string, kinds ...rateKind) {
		for _, name := range l.names(word, kinds...) {
			about.Metrics = append(about.Metrics, report.Label{Name: name.Name, Text: text + name.Text})
		}
	}
	add("", "", rateKinds...)
	for _, kind := range rateKinds {
		about.Metrics = append(about.Metrics, report.Label{Name: "fastest_" + kind.name, Text: "The fastest limit, " + kind.words})
	}
	for _, kind := range streaming {
		about.Metrics = append(about.Metrics, report.Label{Name: "without_" + kind.name, Text: "What passes without a limit, " + kind.words},
			report.Label{Name: "unreached_" + kind.name, Text: fmt.Sprintf("Below %s, of that, %s", rateWords(policy.MaxEgress), kind.words)})
	}
	for i := range l.rates {
		about.Metrics = append(about.Metrics, report.Label{Name: "jain_" + l.rateName(i), Text: "Jain's index of 32 flows, " + l.rateWords(i)})
	}
	add("cpu_", "CPU time of the host: ", rateKinds...)
	add("retransmits_", "Sent again: ", streaming...)
	add("retransmits_needless_", "Of that what had arrived: ", streaming...)
	add("retransmits_start_", "Sent again before that: ", streaming...)
	add("retransmits_start_needless_", "Of that what had arrived: ", streaming...)
	add("settled_", "Settled: ", streaming...)
	for i := range l.rates {
		about.Metrics = append(about.Metrics, report.Label{Name: "settled_stop_" + l.rateName(i), Text: fmt.Sprintf("Settled when %d of 32 have stopped, %s", many[0].streams-stays, l.rateWords(i))})
	}
	add("highest_", "Highest 100 ms: ", streaming...)
	add("first_", "First 100 ms: ", streaming...)
	for _, m := range about.Metrics {
		if strings.HasPrefix(m.Name, "settled_") || strings.HasPrefix(m.Name, "highest_") {
			text := strings.ToLower(m.Text[:1]) + m.Text[1:]
			about.Metrics = append(about.Metrics, report.Label{Name: "here_" + m.Name, Text: "With no CPU away: " + text},
				report.Label{Name: "away_" + m.Name, Text: "A CPU was away: " + text})
		}
	}
	add("away_", "A CPU was away: ", rateKinds...)
	l.result.About = about
}

// What the rates lab sets out to prove.
var delivered = map[string]string{
	ofSender:    "Of each limit of what a workload sends one flow, 32 and UDP get between 99 and 101 %.",
	ofContainer: "So they do of each limit of what arrives by a container's link.",
	ofAnswers:   "They get the same of each limit of what a workload receives where what it answers waits.",
	ofClasses:   "They get the same where what it acknowledges waits in a class of htb.",
}

const (
	datagramsReceived = "UDP gets the same of each limit of what a workload receives."
	streamsReceived   = "TCP, which nobody paces there, gets between 95 and 105 % of it in 5 s: what its bucket collects while a sender waits for its timer may leave at once."
	ratesFair         = "Below a limit of what is sent, or arrives by a container's link, 32 flows share it evenly: Jain's index is at least 0.99."
	ratesLossless     = "Of those flows no segment is sent again, but for what their first ten lose where many start together."
	ratesSettle       = "They settle within 300 ms, after they start and after most of them stop."
	ratesSteady       = "Once settled, no 100 ms have more than 102 % of the limit."
)

// pacedArms are those whose senders are paced.
var pacedArms = []string{ofSender, ofContainer}

// worst judges metrics of some arms by each of their runs, and tells the one that has the run which is furthest off: off is 0 or
// less for what is good. It says how many there were, and of what is not good how much of the time a CPU was away.
func (l *ratesLab) worst(arms []string, labels []report.Label, off func(value float64) float64) (good bool, evidence string) {
	var furthest string
	by, n := math.Inf(-1), 0
	var bad []string
	for _, arm := range arms {
		for _, label := range labels {
			if len(l.values(arm, label.Name)) == 0 {
				continue
			}
			n++
			m := report.Summarise(l.samples[arm][label.Name].unit, l.values(arm, label.Name))
			is, where, span := max(off(m.Min), off(m.Max)), arm+", "+label.Text, strings.TrimSpace(fmt.Sprintf("%.4g to %.4g %s", m.Min, m.Max, m.Unit))
			if is > 0 {
				if away := l.values(arm, "away_"+label.Name); len(away) > 0 {
					span += fmt.Sprintf(" (a CPU away for up to %.2g %% of the time)", slices.Max(away))
				}
				bad = append(bad, where+": "+span)
			}
			if is > by {
				by, furthest = is, fmt.Sprintf("%s: median %.4g, from %s", where, m.Median, span)
			}
		}
	}
	if n == 0 {
		return false, "nothing was measured"
	}
	evidence = fmt.Sprintf("of %d the furthest: %s", n, furthest)
	if len(bad) > 1 {
		evidence += "; all that are beyond: " + strings.Join(bad, "; ")
	}
	return by <= 0, evidence
}

func (l *ratesLab) delivers(arm string) report.Claim {
	good, evidence := l.worst([]string{arm}, l.names("", rateKinds...), func(part float64) float64 { return math.Abs(part-100) - 1 })
	return report.Kept(delivered[arm], good, evidence)
}

func (l *ratesLab) datagramsReceived() report.Claim {
	good, evidence := l.worst([]string{ofReceiver}, l.names("", rateKinds[2]), func(part float64) float64 { return math.Abs(part-100) - 1 })
	return report.Kept(datagramsReceived, good, evidence)
}

func (l *ratesLab) streamsReceived() report.Claim {
	good, evidence := l.worst([]string{ofReceiver}, l.names("", streaming...), func(part float64) float64 { return math.Abs(part-100) - 5 })
	return report.Kept(streamsReceived, good, evidence)
}

func (l *ratesLab) fair() report.Claim {
	var labels []report.Label
	for i := range l.rates {
		labels = append(labels, report.Label{Name: "jain_" + l.rateName(i), Text: l.rateWords(i)})
	}
	good, evidence := l.worst(pacedArms, labels, func(jain float64) float64 { return 0.99 - jain })
	return report.Kept(ratesFair, good, evidence)
}

func (l *ratesLab) losesNothing() report.Claim {
	all := func(word string) (segments float64) {
		for _, arm := range pacedArms {
			for _, label := range l.names(word, streaming...) {
				segments += sum(l.values(arm, label.Name))
			}
		}
		return segments
	}
	again, needless := all("retransmits_"), all("retransmits_needless_")
	return report.Kept(ratesLossless, again == 0, fmt.Sprintf("sent again: %.0f in all runs (%.0f had arrived), and %.0f at their beginnings (%.0f)",
		again, needless, all("retransmits_start_"), all("retransmits_start_needless_")))
}

func (l *ratesLab) settles() report.Claim {
	labels := l.names("settled_", streaming...)
	for i := range l.rates {
		labels = append(labels, report.Label{Name: "settled_stop_" + l.rateName(i), Text: "stopped, " + l.rateWords(i)})
	}
	return l.atAnyTime(ratesSettle, labels, func(ms float64) float64 { return ms - 300 })
}

func (l *ratesLab) isSteady() report.Claim {
	return l.atAnyTime(ratesSteady, l.names("highest_", streaming...), func(part float64) float64 { return part - 102 })
}

// atAnyTime judges what is looked for in each moment. What it would be with no CPU away is told, and does not decide.
func (l *ratesLab) atAnyTime(text string, labels []report.Label, off func(value float64) float64) report.Claim {
	good, evidence := l.worst(pacedArms, labels, off)
	var here []report.Label
	for _, label := range labels {
		label.Name = "here_" + label.Name
		if slices.ContainsFunc(pacedArms, func(arm string) bool { return len(l.values(arm, label.Name)) > 0 }) {
			here = append(here, label)
		}
	}
	if len(here) > 0 {
		is := map[bool]string{true: "is so", false: "is not so either"}
		so, without := l.worst(pacedArms, here, off)
		evidence += fmt.Sprintf("; with no CPU away it %s: %s", is[so], without)
	}
	return report.Kept(text, good, evidence)
}
