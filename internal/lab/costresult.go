package lab

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/report"
)

// What the lab sets out to prove.
const (
	stealsUnseen  = "A process is charged for what packets took from it: beside two streams it computes for at least 5 points less than it is charged for."
	meterAgrees   = "What the meter says that interrupts and it itself took from the loop is within 3 points of what the loop found, in every arm."
	meterSums     = "The matrix of victims and owners sums up to all time of interrupts within 2 %."
	meterIsCheap  = "The meter takes at most 1 % of a CPU that handles 200,000 packets a second."
	meterSparesRR = "It takes at most 2 % of TCP's requests and answers over loopback."
)

// conclude turns the samples of the cpu-cost lab into arms, ratios and claims.
func (l *costLab) conclude() {
	l.summarise(costInfo.Arms...)
	l.ratio("left_on_over_off", l.values("meter_on", "left_percent"), l.values("meter_off", "left_percent"))
	l.ratio("rr_on_over_off", l.values("rr_on", transactions), l.values("rr_off", transactions))
	for _, arm := range costInfo.Arms[1:3] {
		l.ratio(arm+"_effective_over_apparent", l.values(arm, "effective_percent"), l.values(arm, "apparent_percent"))
	}
	for _, arm := range limitArms()[1:] {
		l.ratio(arm+"_over_none", l.values(arm, "stolen_ns_per_packet"), l.values(limitPrefix+"none", "stolen_ns_per_packet"))
	}
	l.limitWarnings()
	l.claim(l.steals(), l.agrees(), l.sumsUp(), l.cheap(), l.sparesRR())
	l.describe()
}

func (l *costLab) median(arm, metric string) float64 {
	return report.Summarise("", l.values(arm, metric)).Median
}

func (l *costLab) steals() report.Claim {
	if l.accounting != cost.ByTick {
		return report.Unproven(stealsUnseen, "this kernel takes interrupts out of the times of tasks (CONFIG_IRQ_TIME_ACCOUNTING)")
	}
	var evidence []string
	for _, arm := range costInfo.Arms[:4] {
		evidence = append(evidence, fmt.Sprintf("%s: charged %.1f %%, computes %.1f", arm, l.median(arm, "apparent_percent"), l.median(arm, "effective_percent")))
	}
	return report.Kept(stealsUnseen, l.median("two_streams", "stolen_percent") >= 5, strings.Join(evidence, "; "))
}

// agrees compares within each repetition: other work differs from one to the next.
func (l *costLab) agrees() report.Claim {
	if l.accounting != cost.ByTick {
		return report.Unproven(meterAgrees, "this kernel does not charge the loop for interrupts, so it finds nothing")
	}
	kept := true
	var evidence []string
	for _, arm := range append(costInfo.Arms[:4:4], limitArms()...) {
		if l.limited.absent[strings.TrimPrefix(arm, limitPrefix)] != "" {
			continue
		}
		found, metered, itself := l.values(arm, "stolen_percent"), l.values(arm, "stolen_percent_meter"), l.values(arm, "meter_itself_percent")
		var apart, interrupts []float64
		for i := range min(len(found), len(metered), len(itself)) {
			apart = append(apart, metered[i]-found[i])
			interrupts = append(interrupts, metered[i]-itself[i]-found[i])
		}
		m := report.Summarise("", apart)
		kept = kept && m.N > 0 && math.Abs(m.Median) <= 3
		evidence = append(evidence, fmt.Sprintf("%s: %+.2f points, from %+.2f to %+.2f (interrupts alone %+.2f)", arm, m.Median, m.Min, m.Max, report.Summarise("", interrupts).Median))
	}
	return report.Kept(meterAgrees, kept, strings.Join(evidence, "; "))
}

func (l *costLab) sumsUp() report.Claim {
	kept := true
	var evidence []string
	for _, arm := range []string{"idle", "one_stream", "two_streams", "packets", "meter_on"} {
		m := report.Summarise("%", l.values(arm, "sums_percent"))
		kept = kept && m.N > 0 && m.Min >= 98 && m.Max <= 102
		evidence = append(evidence, fmt.Sprintf("%s: %.2f to %.2f %%", arm, m.Min, m.Max))
	}
	return report.Kept(meterSums, kept, strings.Join(evidence, "; "))
}

// cheap looks at what the loop has less with the meter than without, of what it is charged for: other tasks take
// now more of the CPU and now less.
func (l *costLab) cheap() report.Claim {
	off, on := l.values("meter_off", "left_percent"), l.values("meter_on", "left_percent")
	var less []float64
	for i := range min(len(off), len(on)) {
		less = append(less, off[i]-on[i])
	}
	i := report.Interval99(less)
	evidence := fmt.Sprintf("the loop has %.2f points less, ±%.2f with a confidence of 99 %%, over %d pairs, at %.0f packets a second with the meter and %.0f without; the kernel's own account of the meter, on all CPUs: %.2f %%",
		i.Mean, i.Half, len(less), l.median("meter_on", "packets_per_second"), l.median("meter_off", "packets_per_second"), l.median("meter_on", "meter_percent"))
	return l.decide(meterIsCheap, i, i.Mean <= 1, i.Mean-i.Half <= 1, i.Mean+i.Half <= 1, evidence)
}

func (l *costLab) sparesRR() report.Claim {
	off, on := l.values("rr_off", transactions), l.values("rr_on", transactions)
	var ratios []float64
	for i := range min(len(off), len(on)) {
		ratios = append(ratios, on[i]/off[i])
	}
	i := report.Interval99(ratios)
	evidence := fmt.Sprintf("%.2f %% of those without, ±%.2f with a confidence of 99 %%, over %d pairs", 100*i.Mean, 100*i.Half, len(ratios))
	return l.decide(meterSparesRR, i, i.Mean >= 0.98, i.Mean+i.Half >= 0.98, i.Mean-i.Half >= 0.98, evidence)
}

// decide keeps a claim by its mean, unless that is known so badly that it could be either way.
func (l *costLab) decide(text string, i report.Interval, kept, atBest, atWorst bool, evidence string) report.Claim {
	if atBest != atWorst && l.busy || math.IsNaN(i.Mean) {
		return report.Unproven(text, evidence+"; run the lab again on a quiet host")
	}
	return report.Kept(text, kept, evidence)
}

func (l *costLab) describe() {
	e := l.result.Environment
	e.Rung = "tracepoints, timed by lot; calls sampled"
	e.Bottleneck = "none: a wire without a queue"
	about := &report.About{Title: "What packets take from a process that computes"}
	about.Summary = fmt.Sprintf("A loop that does nothing but compute runs for %s on CPU %d, which also handles all that arrives at the second of two hosts (RPS steers it there, as the interrupt of a network card's queue would). Beside it no traffic, one and two TCP streams in packets of %d bytes, and %d UDP packets of %d bytes a second (packets). Effective is the part of the CPU's time in which the loop computes, by chunks of about a microsecond: those that took much longer were interrupted. Apparent is what the kernel charges the loop for, and so what top shows. The meter says what interrupts for networking took in the loop's name, and what its own programs took there, which the loop lacks as well. Without it and with it, as weir cost runs it, by turns beside these packets, the loop tells what the meter takes itself (meter_off, meter_on); the meter starts before the packets, so that as many arrive in both. So do requests and answers of one byte over loopback. The arms whose names begin with limit_ compare limits by what they take: the second host passes %d packets a second on to a third, and holds what it sends there to ten times as much by the means of the limiters lab.",
		l.looping, l.cpu, 1514, meteredPackets, meteredSize, limitedPackets)
	about.Metrics = []report.Label{
		{Name: "apparent_percent", Text: "The loop is charged for"},
		{Name: "effective_percent", Text: "It computes for"},
		{Name: "left_percent", Text: "That is, of what it is charged for"},
		{Name: "stolen_percent", Text: "Taken from it in its name, as it finds"},
		{Name: "stolen_ns_per_packet", Text: "The same for each packet"},
		{Name: "stolen_percent_meter", Text: "The same, as the meter says"},
		{Name: "meter_itself_percent", Text: "Of that, by the meter's own programs"},
		{Name: "ksoftirqd_percent", Text: "The kernel's thread for softirqs has of that CPU"},
		{Name: "meter_percent", Text: "The meter's programs take, on all CPUs, by the kernel's account"},
		{Name: "sums_percent", Text: "The matrix has of all time in interrupts"},
		{Name: "packets_per_second", Text: "Packets that arrive"},
		{Name: "mbit", Text: "Bits that arrive"},
		{Name: transactions, Text: "Requests and answers of one byte"},
	}
	about.Ratios = []report.Label{
		{Name: "one_stream_effective_over_apparent", Text: "effective / apparent, beside one stream"},
		{Name: "two_streams_effective_over_apparent", Text: "effective / apparent, beside two streams"},
		{Name: "left_on_over_off", Text: "effective / apparent: with the meter / without"},
		{Name: "rr_on_over_off", Text: "requests and answers: with the meter / without"},
	}
	for _, arm := range limitArms()[1:] {
		about.Ratios = append(about.Ratios, report.Label{Name: arm + "_over_none", Text: "taken a packet: " + strings.TrimPrefix(arm, limitPrefix) + " / no limit"})
	}
	l.result.About = about
	const post = "openssl speed on the CPU that handles packets of a 25 Gbit/s card for a virtual machine, beside netperf TCP_STREAM from one and two sources (2019)"
	for _, p := range []report.Published{
		{Arm: "one_stream", Metric: "apparent_percent", Value: 99.2}, {Arm: "one_stream", Metric: "effective_percent", Value: 40},
		{Arm: "two_streams", Metric: "apparent_percent", Value: 73.6}, {Arm: "two_streams", Metric: "effective_percent", Value: 20},
	} {
		p.Unit, p.Source = "%", post
		l.result.Published = append(l.result.Published, p)
	}
}
