package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/report"
)

// holdsBound is how its bound is held. It is no rung of a link's, so the Controller has no
// words for it.
const holdsBound = "socket buffers fitted by BPF"

// conclude turns the samples of the tcp-memory lab into arms, ratios and claims.
func (l *memoryLab) conclude() {
	l.summarise(memoryInfo.Arms...)
	slices.SortStableFunc(l.result.Series, func(a, b report.Series) int { return l.place(a) - l.place(b) })
	for _, s := range l.loads {
		most := slices.Repeat([]float64{float64(s.max)}, l.Repetitions)
		l.ratio("bounded_over_max"+s.suffix, l.values("bounded", "tcp_memory_bytes"+s.suffix), most)
		l.ratio("bounded_over_unbounded"+s.suffix, l.values("bounded", "tcp_memory_bytes"+s.suffix), l.values("unbounded", "tcp_memory_bytes"+s.suffix))
		for _, arm := range memoryInfo.Arms[1:3] {
			for _, metric := range []string{"neighbour_mbit", "neighbour_rr_ms"} {
				l.ratio(arm+"_"+metric+"_over_alone"+s.suffix, l.values(arm, metric+s.suffix), l.values("alone", metric))
			}
		}
	}
	for _, t := range l.talk.arms[1:] {
		l.ratio(t.arm+"_over_off", l.values(t.arm, transactions), l.values("rr_off", transactions))
	}
	l.warn("a bound is to keep the host from its tcp_mem, which is one table for all: the lab keeps away from it too, so what a neighbour loses there is not shown; host_pressure tells how near it came")
	l.judge()
	l.describe()
}

// place is where a plot stands: in the order of the stuffings, then the talks.
func (l *memoryLab) place(s report.Series) int {
	i := slices.IndexFunc(l.loads, func(load stuffing) bool { return l.plot(load) == s.Plot })
	if i < 0 {
		return len(l.loads)
	}
	return i
}

// What the lab sets out to prove: of each stuffing, and of talks.
const (
	stuffsMuch   = "Without a bound, %d connections whose peers never read hold more than twice %s."
	boundHolds   = "With one, %d connections like those hold at most %s and a tenth, from the first of them on."
	mbitStays    = "Beside %d connections below a bound of %s a neighbour without one keeps at least 95 %% of its throughput."
	requestsStay = "Beside %d connections below a bound of %s, once they are stuffed, its requests take at most 5 %% longer in the median."
	costsLittle  = "A bound with room for all that TCP may ever take costs a connection at most 0.5 % of its requests and answers, with a confidence of 99 %."
	costsGranted = "So does one of " + enough + ", which grants it what it needs."
	costsNested  = "It costs no more than that 1,000 cgroups below the one that is bounded."
)

func (l *memoryLab) judge() {
	for _, judge := range []struct {
		text string
		by   func(string, stuffing) report.Claim
	}{
		{stuffsMuch, l.stuffs},
		{boundHolds, l.holds},
		{mbitStays, l.keeps("neighbour_mbit", func(value float64) bool { return value >= 0.95 })},
		{requestsStay, l.keeps("neighbour_rr_ms", func(value float64) bool { return value <= 1.05 })},
	} {
		for _, s := range l.loads {
			text := fmt.Sprintf(judge.text, s.connections, s.max)
			if s.left != "" {
				l.claim(report.Unproven(text, s.left))
				continue
			}
			l.claim(judge.by(text, s))
		}
	}
	l.claim(l.costs(costsLittle, "rr_on"), l.costs(costsGranted, "rr_granted"), l.costs(costsNested, "rr_nested_1000"))
}

// memoryWords words what an arm held.
func memoryWords(m report.Metric) string {
	return fmt.Sprintf("median %.1f, from %.1f to %.1f MB", m.Median/1e6, m.Min/1e6, m.Max/1e6)
}

func (l *memoryLab) memoryOf(arm string, s stuffing) report.Metric {
	return report.Summarise("B", l.values(arm, "tcp_memory_bytes"+s.suffix))
}

func (l *memoryLab) stuffs(text string, s stuffing) report.Claim {
	m := l.memoryOf("unbounded", s)
	return report.Kept(text, m.Min > 2*float64(s.max), memoryWords(m)+fmt.Sprintf("; the bound is %.1f", float64(s.max)/1e6))
}

// holds looks at the worst repetition, where all connections were there. That a bound is not
// passed says nothing where it would not be without one either.
func (l *memoryLab) holds(text string, s stuffing) report.Claim {
	m, all := l.memoryOf("bounded", s), report.Summarise("", l.values("bounded", "connections"+s.suffix))
	free := l.memoryOf("unbounded", s)
	kept := m.Max <= 1.1*float64(s.max)
	evidence := memoryWords(m) + fmt.Sprintf("; the bound is %.1f", float64(s.max)/1e6)
	switch {
	case kept && all.Min < float64(s.connections):
		return report.Unproven(text, evidence+fmt.Sprintf("; %.0f connections were there", all.Min))
	case kept && free.Min <= float64(s.max):
		return report.Unproven(text, evidence+fmt.Sprintf("; without it they hold %.1f", free.Min/1e6))
	}
	return report.Kept(text, kept, evidence)
}

// keeps judges a figure of the neighbour's by the median over the pairs, if the neighbour
// alone allows that.
func (l *memoryLab) keeps(metric string, kept func(float64) bool) func(string, stuffing) report.Claim {
	return func(text string, s stuffing) report.Claim {
		r, ok := l.result.Ratios["bounded_"+metric+"_over_alone"+s.suffix]
		if !ok {
			return report.Unproven(text, "nothing was measured")
		}
		evidence := spread(r)
		if free, ok := l.result.Ratios["unbounded_"+metric+"_over_alone"+s.suffix]; ok {
			evidence += fmt.Sprintf("; without the bound %.3f", free.Value)
		}
		if why := l.unsteady(metric); why != "" && kept(r.Low) != kept(r.High) {
			return report.Unproven(text, evidence+"; "+why)
		}
		return report.Kept(text, kept(r.Value), evidence)
	}
}

// unsteady says why pairs on both sides of a bound decide nothing; "" where they do.
func (l *memoryLab) unsteady(metric string) string {
	alone := report.Summarise("", l.values("alone", metric))
	switch {
	case alone.Max > unsteady*alone.Min:
		return fmt.Sprintf("alone it varied %.1f-fold by itself: run the lab again on a quiet host", alone.Max/alone.Min)
	case l.busy:
		return "other work had the CPUs: run the lab again on a quiet host"
	}
	return ""
}

// costs judges an arm by the mean of its ratios to rr_off, where that is known well enough or
// lies on one side of the bound with all that is not known.
func (l *memoryLab) costs(text, arm string) report.Claim {
	const least = 1 - 0.005
	i, n := l.talkRatio(arm), len(l.values(arm, transactions))
	evidence := fmt.Sprintf("%.2f %% of rr_off, ±%.2f with a confidence of 99 %%, over %d pairs", 100*i.Mean, 100*i.Half, n)
	if rate, known := publishedRates[arm]; known {
		evidence += fmt.Sprintf("; published: %.2f %%", 100*rate/publishedRates["rr_off"])
	}
	if i.Half > precise && i.Mean-i.Half < least && i.Mean+i.Half >= least {
		return report.Unproven(text, evidence+"; run the lab again on a quiet host")
	}
	return report.Kept(text, i.Mean >= least, evidence)
}

// publishedRates are the transactions per second of the series of 2011.
var publishedRates = map[string]float64{"rr_off": 35356.22, "rr_on": 35399.12, "rr_nested_1000": 35304.35}

func (l *memoryLab) describe() {
	e := l.result.Environment
	e.Rung = holdsBound
	e.Bottleneck = "the neighbour's line: " + plainLine(uint64(l.Rate)).String() + "; the stuffed connections have a wire without a queue"
	e.Policy = "# of one arm after the other; rr_off has none\n" +
		boundPolicy(bounded{"stuffed", l.stuffed, l.loads[0].bound()})
	var bounds, loads []string
	for _, t := range l.talk.arms[1:] {
		bounds = append(bounds, fmt.Sprintf("%s %s", t.arm, t.bound))
	}
	l.result.About = &report.About{Title: "A bound on TCP memory: what connections hold whose peers never read"}
	about := l.result.About
	for _, s := range l.loads {
		loads = append(loads, fmt.Sprintf("%d connections, each written up to %.0f KiB, with a bound of %s", s.connections, float64(s.each)/1024, s.max))
		suffix := fmt.Sprintf(", %d connections", s.connections)
		about.Metrics = append(about.Metrics,
			report.Label{Name: "tcp_memory_bytes" + s.suffix, Text: "TCP memory, the most" + suffix},
			report.Label{Name: "connections" + s.suffix, Text: "Connections that were made, of" + strings.TrimPrefix(suffix, ",")},
			report.Label{Name: "host_pressure" + s.suffix, Text: "All TCP of the host, of where tcp_mem begins to press" + suffix},
			report.Label{Name: "neighbour_mbit" + s.suffix, Text: "Neighbour, frames on its line" + suffix},
			report.Label{Name: "neighbour_rr_ms" + s.suffix, Text: "Neighbour's request and answer, median" + suffix},
			report.Label{Name: "neighbour_rr_p99_ms" + s.suffix, Text: fmt.Sprintf("Neighbour's request and answer, 99 %% of %d%s", neighbourRequests.N(), suffix)},
		)
		about.Ratios = append(about.Ratios,
			report.Label{Name: "bounded_over_max" + s.suffix, Text: "memory: bounded / its bound" + suffix},
			report.Label{Name: "bounded_over_unbounded" + s.suffix, Text: "memory: bounded / unbounded" + suffix},
		)
		for _, arm := range memoryInfo.Arms[1:3] {
			about.Ratios = append(about.Ratios,
				report.Label{Name: arm + "_neighbour_mbit_over_alone" + s.suffix, Text: "neighbour: beside " + arm + " / alone" + suffix},
				report.Label{Name: arm + "_neighbour_rr_ms_over_alone" + s.suffix, Text: "its requests: beside " + arm + " / alone" + suffix},
			)
		}
	}
	about.Metrics = append(about.Metrics,
		report.Label{Name: transactions, Text: "Requests and answers of one byte, median of turns"},
		report.Label{Name: transactions + "_all", Text: "The same, mean of all turns"},
	)
	for _, t := range l.talk.arms[1:] {
		about.Ratios = append(about.Ratios, report.Label{Name: t.arm + "_over_off", Text: "requests and answers: " + t.arm + " / rr_off"})
	}
	about.Summary = fmt.Sprintf("A workload opens connections to peers that never read, and writes: %s. The wire is as wide as loopback, where TCP lets buffers grow to megabytes. What they hold is what sock_diag says of their sockets, every %s for %s from the first connection on, and once more after %s; the most counts. Beside them a neighbour of no bound sends %d TCP flows over a line of its own, and in that last time asks %d bytes every %s. Then one process exchanges single bytes with itself over loopback, over one connection of each kind in turns of %s, %d a repetition, both ends on one CPU and before all other work there: without a bound, with one that has room for all that TCP may ever take, with one that grants what such a connection needs, and with one that has no room for that, so that it is watched (%s). The sockets of rr_nested_1000 are made %d cgroups below the one that is bounded; the process itself goes back then, since that deep what the kernel counts at each switch of tasks (PSI above all) takes many times as long as a request, with a bound or without.",
		strings.Join(loads, "; "), sampling, stuffTime, calmTime, neighbourStreams, neighbourRequests.Size, neighbourRequests.Every,
		l.talk.turns.Slice, l.talk.turns.Rounds, strings.Join(bounds, ", "), nesting)
	l.publish()
}

func (l *memoryLab) publish() {
	const series = "netperf TCP_RR on localhost, without and with a limit per cgroup in the kernel, and at 1,000 levels; 99 % confidence, 1 % interval, up to 30 repetitions (patches of 2011)"
	const stuffed = "50 stuffed connections over loopback, without and with buffers of 64 KiB from the first on, both ends counted (Linux 6.18)"
	for _, arm := range []string{"rr_off", "rr_on", "rr_nested_1000"} {
		l.result.Published = append(l.result.Published, report.Published{Arm: arm, Metric: transactions, Value: publishedRates[arm], Unit: "/s", Source: series})
		if arm != "rr_off" {
			l.result.Published = append(l.result.Published, report.Published{Metric: arm + "_over_off", Value: publishedRates[arm] / publishedRates["rr_off"], Source: series})
		}
	}
	l.result.Published = append(l.result.Published,
		report.Published{Arm: "unbounded", Metric: "tcp_memory_bytes", Value: 199.7e6, Unit: "B", Source: stuffed},
		report.Published{Arm: "bounded", Metric: "tcp_memory_bytes", Value: 6.8e6, Unit: "B", Source: stuffed},
		report.Published{Metric: "bounded_over_unbounded", Value: 6.8 / 199.7, Source: stuffed},
	)
}
