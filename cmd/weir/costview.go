package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-net/weir/internal/cost"
)

// A costView renders a report of costs for a terminal. Times are parts of one CPU.
type costView struct {
	painter
	width, height int // height 0: no end
	seconds       float64
	b             strings.Builder
}

func (v *costView) render(r *cost.Report, by string) string {
	v.seconds = r.Seconds
	if r.Rung == cost.ByCounters {
		return v.counters(r)
	}
	top := fmt.Sprintf("networking took %s of a CPU, of %s, in %s", v.share(r.Total.All), count(len(r.CPUs), "CPU"), inSeconds(r.Seconds))
	hang(&v.b, "", top, v.width, nil)
	v.b.WriteString("\n")
	below := v.below(r)
	// The screen has so many lines. A title, empty lines before and behind the table, its own title, and
	// how many are left out are no rows.
	rows := len(r.Victims) + len(r.Owners) + len(r.CPUs)
	if v.height > 0 {
		rows = max(1, v.height-5-strings.Count(below, "\n"))
	}
	switch by {
	case "cpu":
		v.cpus(r.CPUs, rows)
	case "victim":
		v.parties("victim", r.Victims, rows)
	case "owner":
		v.parties("owner", r.Owners, rows)
	case "matrix":
		v.matrix(r, rows)
	}
	v.b.WriteString("\n" + below)
	return v.b.String()
}

// counters renders what is known without a meter, whatever table was asked for.
func (v *costView) counters(r *cost.Report) string {
	t := table{columns: []column{
		{title: "CPU", right: true}, {title: "busy", right: true}, {title: "all softirqs", right: true}, {title: "squeezes/s", right: true, rank: 1},
	}}
	for _, c := range r.CPUs {
		t.add(plainCells(fmt.Sprint(c.CPU), v.share(c.Busy), v.share(c.Softirqs), v.rate(c.Squeezed))...)
	}
	t.render(&v.b, v.painter, "", v.width)
	hang(&v.b, "net_rx   ", v.rate(r.Softirqs.RX)+"/s, net_tx "+v.rate(r.Softirqs.TX)+"/s", v.width, nil)
	hang(&v.b, "kernel   ", r.Accounting.Misleads(), v.width, nil)
	for _, w := range r.Warnings {
		hang(&v.b, "warning: ", w, v.width, v.yellow)
	}
	return v.b.String()
}

// share is a part of one CPU.
func (v *costView) share(seconds float64) string {
	switch percent := 100 * seconds / v.seconds; {
	case seconds == 0:
		return "0"
	case percent < 0.01:
		return "<0.01 %"
	case percent < 1:
		return fmt.Sprintf("%.2f %%", percent)
	default:
		return fmt.Sprintf("%.1f %%", percent)
	}
}

// rate is how many there were in a second.
func (v *costView) rate(n uint64) string { return grouped(uint64(float64(n)/v.seconds + 0.5)) }

func inSeconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond).String()
}

func (v *costView) cpus(all []cost.CPUShare, rows int) {
	t := table{columns: []column{
		{title: "CPU", right: true}, {title: "networking", right: true}, {title: "irq", right: true, rank: 5}, {title: "net_rx", right: true}, {title: "net_tx", right: true, rank: 4}, {title: "other", right: true, rank: 8},
		{title: "send", right: true, rank: 2}, {title: "receive", right: true, rank: 2}, {title: "stolen", right: true, rank: 1},
		{title: "ksoftirqd", right: true, rank: 3}, {title: "while idle", right: true, rank: 6}, {title: "squeezes/s", right: true, rank: 7},
	}}
	for _, c := range all[:min(len(all), rows)] {
		t.add(plainCells(fmt.Sprint(c.CPU), v.share(c.All), v.share(c.IRQ), v.share(c.RX), v.share(c.TX), v.share(c.Other), v.share(c.Send), v.share(c.Receive),
			v.share(c.Stolen), v.share(c.Ksoftirqd), v.share(c.Idle), v.rate(c.Squeezed))...)
	}
	t.render(&v.b, v.painter, "", v.width)
	v.more(len(all), rows, "CPU")
}

func (v *costView) parties(title string, all []cost.Party, rows int) {
	t := table{columns: []column{
		{title: title}, {title: "workload", rank: 3}, {title: "networking", right: true}, {title: "irq", right: true, rank: 6}, {title: "net_rx", right: true, rank: 1},
		{title: "net_tx", right: true, rank: 5}, {title: "other", right: true, rank: 7}, {title: "send", right: true, rank: 2}, {title: "receive", right: true, rank: 2},
		{title: "packets/s", right: true, rank: 4},
	}}
	for _, p := range all[:min(len(all), rows)] {
		t.add(plainCells(partyName(p.PartyID), p.Workload, v.share(p.All), v.share(p.IRQ), v.share(p.RX), v.share(p.TX), v.share(p.Other), v.share(p.Send+p.Thread), v.share(p.Receive),
			v.rate(p.Packets))...)
	}
	t.render(&v.b, v.painter, "", v.width)
	v.more(len(all), rows, title)
}

func (v *costView) more(all, shown int, thing string) {
	if all > shown {
		fmt.Fprintf(&v.b, "%s\n", v.dim("and "+count(all-shown, thing)+" more"))
	}
}

// partyName names a victim or an owner. What is no name of somebody is in brackets.
func partyName(p cost.PartyID) string {
	switch p.Kind {
	case cost.PartyTask:
		return fmt.Sprintf("%d %s", p.PID, p.Name)
	case cost.PartyForwarded:
		return "(forwarded to " + p.Name + ")"
	case cost.PartyWorkload, cost.PartyCgroup:
		return p.Name
	}
	return "(" + string(p.Kind) + ")"
}

// Of the matrix so many owners have a column, at most; the others share one.
const ownerColumns = 6

// matrix shows what each victim lost to each owner. Tasks of one workload are one victim.
func (v *costView) matrix(r *cost.Report, rows int) {
	victims, owners := axis(r.Matrix, func(c cost.Cell) string { return victimName(c.Victim) }), axis(r.Matrix, func(c cost.Cell) string { return partyName(c.Owner) })
	cells := map[[2]string]float64{}
	for _, c := range r.Matrix {
		owner := partyName(c.Owner)
		if slices.Index(owners, owner) >= ownerColumns {
			owner = ""
		}
		cells[[2]string{victimName(c.Victim), owner}] += c.Seconds
		cells[[2]string{victimName(c.Victim), "*"}] += c.Seconds
	}
	t := table{columns: []column{{title: "victim \\ owner"}, {title: "all", right: true}}}
	columns := []string{"*"}
	for i, owner := range owners[:min(len(owners), ownerColumns)] {
		t.columns = append(t.columns, column{title: owner, right: true, rank: i})
		columns = append(columns, owner)
	}
	if len(owners) > ownerColumns {
		t.columns = append(t.columns, column{title: "others", right: true, rank: 1})
		columns = append(columns, "")
	}
	for _, victim := range victims[:min(len(victims), rows)] {
		line := []string{victim}
		for _, owner := range columns {
			line = append(line, v.share(cells[[2]string{victim, owner}]))
		}
		t.add(plainCells(line...)...)
	}
	t.render(&v.b, v.painter, "", v.width)
	v.more(len(victims), rows, "victim")
}

func victimName(p cost.PartyID) string {
	if p.Workload != "" {
		return p.Workload
	}
	return partyName(p)
}

// axis names all of one side of the matrix, who has most first.
func axis(cells []cost.Cell, name func(cost.Cell) string) []string {
	sums := map[string]float64{}
	var all []string
	for _, c := range cells {
		n := name(c)
		if _, known := sums[n]; !known {
			all = append(all, n)
		}
		sums[n] += c.Seconds
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	return all
}

// below is what is said of the whole host.
func (v *costView) below(r *cost.Report) string {
	var b strings.Builder
	rx := r.Softirqs.Microseconds
	hang(&b, "irq      ", fmt.Sprintf("%s/s, in and out of each: %s µs", v.rate(r.Interrupts.Count), figure(r.Interrupts.Way)), v.width, nil)
	hang(&b, "net_rx   ", fmt.Sprintf("%s/s, µs each: p50 %s, p90 %s, p99 %s, max %s  %s", v.rate(r.Softirqs.RX),
		figure(rx.P50), figure(rx.P90), figure(rx.P99), figure(rx.Max), bars(rx)), v.width, nil)
	hang(&b, "polls    ", fmt.Sprintf("%s/s, packets each: p50 %s, p90 %s, p99 %s, max %s  %s; %s/s used up their budget, %s/s squeezed", v.rate(r.Polls.Count),
		figure(r.Polls.Sizes.P50), figure(r.Polls.Sizes.P90), figure(r.Polls.Sizes.P99), figure(r.Polls.Sizes.Max), bars(r.Polls.Sizes),
		v.rate(r.Polls.Exhausted), v.rate(r.Polls.Squeezed)), v.width, nil)
	hang(&b, "meter    ", fmt.Sprintf("%s of a CPU: it looks for %s of the time, and times 1 softirq of %s then", v.share(r.Meter), wholePercent(r.MeterPart), figure(ratio(r.Softirqs.RX+r.Softirqs.TX+r.Softirqs.Other, r.Softirqs.Timed))), v.width, nil)
	hang(&b, "kernel   ", r.Accounting.Misleads(), v.width, nil)
	for _, w := range r.Warnings {
		hang(&b, "warning: ", w, v.width, v.yellow)
	}
	return b.String()
}

func wholePercent(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) }

func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// figure has three digits at most, but for large ones.
func figure(f float64) string {
	if f >= 100 {
		return grouped(uint64(f + 0.5))
	}
	return fmt.Sprintf("%.3g", f)
}

// bars draws a distribution, a bar for each power of two from its first value on; "" where there is none.
func bars(s cost.Summary) string {
	heights := []rune("▁▂▃▄▅▆▇█")
	var counts []uint64
	low := 1.0
	for low > 1e-3 && len(s.Buckets) > 0 && s.Buckets[0].Low > 0 && s.Buckets[0].Low < low {
		low /= 2
	}
	var most uint64
	for _, b := range s.Buckets {
		i := 0
		for edge := 2 * low; b.Low >= edge; edge *= 2 {
			i++
		}
		for len(counts) <= i {
			counts = append(counts, 0)
		}
		counts[i] += b.Count
		most = max(most, counts[i])
	}
	var drawn strings.Builder
	for _, n := range counts {
		if n == 0 {
			drawn.WriteRune(' ')
			continue
		}
		drawn.WriteRune(heights[n*uint64(len(heights)-1)/most])
	}
	return strings.TrimSpace(drawn.String())
}
