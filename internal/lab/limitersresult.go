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
		Summary: fmt.Sprintf("A workload sends over a veth pair without a queue, held to a limit by each means in turn. First UDP of %d bytes from %d sockets, under limits of %s, %s and %s: 10, 1.25 and 0.25 times what it offers without one; and once more over two lines by turns of %s, one with the first of these limits, or a program that does nothing or only asks each packet's socket, and one without, since two floods of one host differ; and so that what is found is known to be of these, over two lines with neither. Then 32 TCP flows, one, and 32 that understand ECN, under a limit of %s, and beside them a request of %d bytes every %s, timed from when it is due; below a limit of Weir's the first of these are there %d times in each repetition, if there are several, each time between requests alone without it. Of HTB there is: %s. Weir holds the limit in two arms: edt gives departure times over fq, weir paces. CPU time is that of the whole host, from /proc/stat, where most kernels sample softirqs once a tick; retransmits are TCP's own count, and so is how many of them had arrived already (D-SACK): such are sent when an answer is late, because the host did something else for some milliseconds, say. Steal, where this is a virtual machine whose host tells, is what that kept of its CPUs.",
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
