package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
)

// A steerView renders what the queues of links receive for a terminal.
type steerView struct {
	painter
	width, height int // height 0: no end
	b             strings.Builder
}

func (v *steerView) render(r *agent.QueueRates) string {
	below := v.below(r)
	rows := len(r.Queues) + len(r.Links)
	if v.height > 0 {
		rows = max(1, v.height-3-strings.Count(below, "\n")) // the titles, an empty line, how many are left out
	}
	v.queues(r, rows)
	v.b.WriteString(below)
	return v.b.String()
}

// queues has a row for each queue, and one for a link of several: what the device counts.
func (v *steerView) queues(r *agent.QueueRates, rows int) {
	t := table{columns: []column{
		{title: "link"}, {title: "queue", right: true}, {title: "packets/s", right: true}, {title: "received", right: true, rank: 2},
		{title: "irq", right: true, rank: 4}, {title: "irq on CPU", rank: 1}, {title: "interrupts/s", rank: 3}, {title: "RPS to CPU", rank: 2},
		{title: "RSS table", rank: 5}, {title: "driver", rank: 6},
	}}
	var all [][]cell
	for _, d := range r.Links {
		several := 0
		for _, q := range r.Queues {
			if q.Link == d.Link {
				several++
			}
		}
		if several != 1 {
			all = append(all, plainCells(d.Link, "all", perSecond(d.Packets), bits(d.Bits), "", "", "", "", queueWords(d.Table), d.Driver))
		}
		for _, q := range r.Queues {
			if q.Link != d.Link {
				continue
			}
			c := plainCells(q.Link, fmt.Sprint(q.Queue), counted(q.Packets, perSecond), counted(q.Bits, bits), "", "", "", q.RPS.String(), "", "")
			if i := q.Interrupt; i != nil {
				c[4].text, c[5].text, c[6].text = fmt.Sprint(i.Number), i.CPUs.String(), came(i.Came)
			}
			if several == 1 {
				c[8].text, c[9].text = queueWords(d.Table), d.Driver
			}
			all = append(all, c)
		}
	}
	for _, row := range all[:min(len(all), rows)] {
		t.add(row...)
	}
	t.render(&v.b, v.painter, "", v.width)
	if len(all) > rows {
		v.b.WriteString(v.dim(fmt.Sprintf("and %d more", len(all)-rows)) + "\n")
	}
}

func queueWords(table string) string {
	const short = 12
	switch {
	case table == "" || table == plan.EvenTable:
		return table
	case len(table) > short:
		return "uneven"
	}
	return "queue " + table
}

// counted renders a number, or that the driver does not count it.
func counted(n *float64, render func(float64) string) string {
	if n == nil {
		return "?"
	}
	return render(*n)
}

// came is on which CPUs an interrupt came how often.
func came(all []plan.CPUSpeed) string {
	var parts []string
	for _, c := range all {
		parts = append(parts, fmt.Sprintf("%s on CPU %d", perSecond(c.PerSecond), c.CPU))
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, ", ")
}

// below is what stands under the queues.
func (v *steerView) below(r *agent.QueueRates) string {
	var b strings.Builder
	var parts []string
	for _, c := range r.CPUs {
		part := fmt.Sprintf("CPU %d %s/s", c.CPU, perSecond(c.Packets))
		if c.HandedOver >= 0.05 {
			part += fmt.Sprintf(" (woken by RPS %s/s)", perSecond(c.HandedOver))
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		parts = []string{"none"}
	}
	b.WriteString("\n")
	hang(&b, "packets by CPU: ", strings.Join(parts, ", "), v.width, nil)
	for _, d := range r.Links {
		for _, rule := range d.Rules {
			hang(&b, "rule of "+d.Link+": ", fmt.Sprintf("to %s: queue %d", rule.To(), rule.Queue), v.width, nil)
		}
		if d.Threaded {
			hang(&b, d.Link+": ", "its queues are polled in threads of their own, which run where the scheduler puts them", v.width, nil)
		}
	}
	for _, s := range r.Steered {
		hang(&b, "steered: ", steeringLine(s), v.width, v.yellow)
	}
	for _, w := range r.Warnings {
		hang(&b, "warning: ", w, v.width, v.yellow)
	}
	return b.String()
}

// steeringLine says how a link is steered.
func steeringLine(s agent.SteeringStatus) string {
	text := fmt.Sprintf("%s since %s, by %s", steeredTo(s.Link, s.CPU), s.Since.Local().Format(time.DateTime), s.Way)
	if len(s.Changed) > 0 {
		text += "; not so any more: " + strings.Join(s.Changed, ", ")
	}
	return text
}

// steered tells of experiments, in status.
func (v *statusView) steered(all []agent.SteeringStatus) {
	for i, s := range all {
		if i == 0 {
			v.line("")
		}
		hang(&v.b, "experiment: ", steeringLine(s)+" (weir steer --undo "+s.Link+" ends it)", v.width, v.yellow)
	}
}
