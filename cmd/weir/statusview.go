package main

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
)

// A statusView renders a status for a terminal: the verdict, what needs a hand,
// the links, the workloads, and what nobody claims.
type statusView struct {
	painter
	width int
	now   time.Time
	b     strings.Builder
}

func (v *statusView) render(s *agent.Status) string {
	v.line("%s", verdictLine(v.painter, s.OK, s.Verdict))
	if s.Policy != "" {
		hang(&v.b, "", fmt.Sprintf("%s, applied %s (%s ago)", s.Policy,
			s.Applied.Local().Format(time.DateTime), span(v.now.Sub(*s.Applied))), v.width, v.dim)
	}
	v.needsAHand(s)
	v.broken(s)
	for _, l := range s.Links {
		v.link(l)
	}
	v.promises(s)
	v.sets(s)
	v.unclaimed(s)
	v.steered(s.Steered)
	for i, w := range s.Warnings {
		if i == 0 {
			v.line("")
		}
		hang(&v.b, "warning: ", w, v.width, v.yellow)
	}
	return v.b.String()
}

func (v *statusView) line(format string, args ...any) { fmt.Fprintf(&v.b, format+"\n", args...) }

// verdictLine colours the word that a verdict begins with.
func verdictLine(paint painter, ok bool, verdict string) string {
	word, rest, found := strings.Cut(verdict, ":")
	if !found {
		return verdict // nothing is applied
	}
	colour := paint.green
	if !ok {
		colour = paint.red
	}
	return colour(word+":") + rest
}

// needsAHand tells what waits for somebody.
func (v *statusView) needsAHand(s *agent.Status) {
	switch p := s.Pending; {
	case p == nil && s.Unfinished != nil:
		v.line("  weir apply FILE finishes it, weir reset takes it back")
	case p == nil:
	case v.now.Before(p.Deadline):
		v.b.WriteString(untilConfirmed(v.painter, p.Deadline, v.now, s.Unfinished != nil))
	default:
		v.line("\n%s: it should have been taken back %s ago, and was not", v.red("unconfirmed"), span(v.now.Sub(p.Deadline)))
		v.b.WriteString(waysOut(s.Unfinished != nil))
	}
	if r := s.Rollback; r != nil && rolledBackLast(s) {
		proof := "and everything read back is as before"
		if !r.Proved {
			proof = "and not proved: weir reset or weir apply FILE mends it"
		}
		v.line("%s at %s", v.yellow("rolled back"), r.When.Local().Format(time.DateTime))
		hang(&v.b, "  ", r.Reason+"; "+proof, v.width, nil)
	}
}

// rolledBackLast reports whether nothing was applied since the last rollback.
func rolledBackLast(s *agent.Status) bool {
	return s.Rollback != nil && (s.Applied == nil || s.Applied.Before(s.Rollback.When))
}

func (v *statusView) link(l agent.LinkStatus) {
	v.line("\n%s  %s, by %s", v.bold("link "+l.Name), l.Queue, l.Hook)
	t := table{columns: []column{
		{title: "class", right: true}, {title: "priorities", right: true},
		{title: "packets", right: true}, {title: "sent", right: true, rank: 2},
		{title: "dropped", right: true, rank: 1}, {title: "waiting", right: true, rank: 3},
	}}
	var idle []string
	for i := len(l.Classes) - 1; i >= 0; i-- { // the most urgent first
		c := l.Classes[i]
		if c.Packets == 0 && c.Drops == 0 && c.Backlog == 0 {
			idle = append(idle, carried(c.Class, len(l.Classes)))
			continue
		}
		t.add(plainCells(fmt.Sprint(c.Class), carried(c.Class, len(l.Classes)), grouped(c.Packets), amount(c.Bytes),
			grouped(c.Drops), amount(c.Backlog))...)
	}
	t.render(&v.b, v.painter, "  ", v.width)
	if len(idle) > 0 {
		hang(&v.b, "  nothing sent at ", strings.Join(idle, ", "), v.width, v.dim)
	}
	hang(&v.b, "  ", l.Why, v.width, v.dim)
	if len(l.Lacks) > 0 {
		hang(&v.b, "  not promised: ", strings.Join(l.Lacks, "; "), v.width, v.dim)
	}
}

// carried names the priorities of a class: 14-15.
func carried(class, classes int) string {
	first, last := -1, -1
	for level, carrier := range plan.SpreadOver(max(classes, 1)) {
		if int(carrier) == class {
			if first < 0 {
				first = level
			}
			last = level
		}
	}
	switch {
	case first < 0:
		return ""
	case first == last:
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// everybody stands in the place of a workload for all packets of a link.
const everybody = "(all)"

func (v *statusView) promises(s *agent.Status) {
	colours := map[plan.Verdict]func(string) string{plan.Kept: v.green, plan.Broken: v.red, plan.Unprovable: v.yellow}
	t := table{columns: []column{
		{title: "workload"}, {title: "link"}, {title: "promise"}, {title: "verdict"},
		{title: "packets", right: true, rank: 3}, {title: "sent", right: true, rank: 2}, {title: "evidence", rank: 4},
	}}
	unprovable := map[string]string{}
	beside := map[string]bool{}
	for _, set := range s.Sets {
		beside[set.Name] = true // told by sets
	}
	for _, j := range s.Promises {
		if beside[j.Workload] {
			continue
		}
		workload, packets, bytes := cmp.Or(j.Workload, everybody), grouped(j.Traffic.Packets), amount(j.Traffic.Bytes)
		switch {
		case j.PPS != 0:
			bytes = "" // they are not counted
		case j.Promise == plan.PromiseIngress || j.To != "":
			packets = "" // neither are they
		case j.Promise == plan.PromiseMemory || j.Promise == plan.PromiseVRF:
			packets, bytes = "", ""
		}
		t.add(cell{text: workload}, cell{text: where(j)}, cell{text: j.Terms()},
			cell{string(j.Verdict), colours[j.Verdict]}, cell{text: packets},
			cell{text: bytes}, cell{text: evidence(j)})
		if j.Verdict == plan.Unprovable {
			unprovable[where(j)] = reason(j.Evidence)
		}
	}
	if len(t.rows) == 0 {
		return
	}
	v.line("")
	t.render(&v.b, v.painter, "", v.width)
	for _, where := range slices.Sorted(maps.Keys(unprovable)) {
		hang(&v.b, "  not provable on "+where+": ", unprovable[where], v.width, v.dim)
	}
	for _, j := range s.Promises {
		if _, measured, _ := strings.Cut(j.Evidence, "; "); j.Memory != nil && j.Verdict != plan.Broken {
			hang(&v.b, "  sockets of "+j.Workload+": ", measured, v.width, v.dim)
		}
	}
	if m := s.TCPMemory; m != nil {
		colour := v.pressure(*m)
		if colour == nil {
			colour = v.dim
		}
		hang(&v.b, "  ", memoryLine(*m), v.width, colour)
	}
	v.limits(s.Limits)
	for _, w := range s.Weights {
		hang(&v.b, "  "+w.Workload+": ", w.String(), v.width, v.dim)
	}
}

// limits says how limits are held and why so, those of one rung together.
func (v *statusView) limits(all []agent.LimitStatus) {
	type rung struct{ how, lacks string }
	held := map[rung][]string{}
	var order []rung
	for _, l := range all {
		r := rung{l.Rung + ": " + l.Why, strings.Join(l.Lacks, "; ")}
		if held[r] == nil {
			order = append(order, r)
		}
		name := cmp.Or(l.Workload, l.Link+" itself")
		apart := func(other agent.LimitStatus) bool {
			return other.Workload == l.Workload && other.Promise != l.Promise && other.Rung != l.Rung
		}
		if l.Workload != "" && l.Promise == plan.PromiseIngress && slices.ContainsFunc(all, apart) {
			name = "what " + name + " receives"
		}
		if !slices.Contains(held[r], name) {
			held[r] = append(held[r], name)
		}
	}
	for _, r := range order {
		hang(&v.b, "  limits of "+some(held[r])+" by ", r.how, v.width, v.dim)
		if r.lacks != "" {
			hang(&v.b, "    not promised: ", r.lacks, v.width, v.dim)
		}
	}
}

// evidence is a judgement's first proof, and of a limit what was measured: the
// traffic has columns of its own, and what is broken was told above.
func evidence(j plan.Judgement) string {
	if j.Verdict == plan.Broken {
		return "see above"
	}
	first, measured, _ := strings.Cut(j.Evidence, "; ")
	if j.Promise != plan.PromisePriority {
		last, _, _ := strings.Cut(measured, ",")
		return last
	}
	first, _, _ = strings.Cut(first, " of ") // the link's line says of what
	return first
}

// reason is the last part of the evidence of what can not be proved.
func reason(evidence string) string {
	parts := strings.SplitN(evidence, "; ", 3)
	return parts[len(parts)-1]
}

func (v *statusView) sets(s *agent.Status) {
	t := table{columns: []column{
		{title: "set"}, {title: "promise"}, {title: "state"}, {title: "packets", right: true, rank: 1}, {title: "sent", right: true, rank: 2},
		{title: "evidence", rank: 3},
	}}
	lost, measured := map[string]bool{}, map[string][]string{}
	for _, j := range s.Promises {
		lost[j.Workload] = lost[j.Workload] || j.Verdict == plan.Broken
		switch j.Promise {
		case plan.PromiseEgress:
			measured[j.Workload] = append(measured[j.Workload], evidence(j))
		case plan.PromiseIngress:
			measured[j.Workload] = append(measured[j.Workload], "ingress: "+evidence(j))
		case plan.PromiseMemory:
			measured[j.Workload] = append(measured[j.Workload], "tcp-memory: "+evidence(j))
		}
	}
	for _, set := range s.Sets {
		state := cell{"in force", v.green}
		switch {
		case lost[set.Name]:
			state = cell{"broken, see above", v.red}
		case !set.Alive:
			state = cell{"its process is gone", v.dim}
		}
		sum := total(maps.Values(set.Traffic))
		t.add(cell{text: strings.TrimPrefix(set.Name, "set ")}, cell{text: set.Terms}, state,
			cell{text: grouped(sum.Packets)}, cell{text: amount(sum.Bytes)}, cell{text: strings.Join(measured[set.Name], ", ")})
	}
	if len(t.rows) > 0 {
		v.line("")
	}
	t.render(&v.b, v.painter, "", v.width)
}

// total is the traffic of all links.
func total(all iter.Seq[plan.Traffic]) (sum plan.Traffic) {
	for t := range all {
		sum.Packets += t.Packets
		sum.Bytes += t.Bytes
	}
	return sum
}

// unclaimed shows what belongs to no workload.
func (v *statusView) unclaimed(s *agent.Status) {
	t := table{columns: []column{{title: "nobody's"}, {title: "link"}, {title: "packets", right: true}, {title: "sent", right: true}}}
	for _, link := range slices.Sorted(maps.Keys(s.Unclaimed)) {
		u := s.Unclaimed[link]
		t.add(plainCells("unclaimed", link, grouped(u.Unclaimed.Packets), amount(u.Unclaimed.Bytes))...)
		if u.Unclassified.Packets > 0 {
			t.add(plainCells("unclassified", link, grouped(u.Unclassified.Packets), amount(u.Unclassified.Bytes))...)
		}
	}
	if len(t.rows) > 0 {
		v.line("")
	}
	t.render(&v.b, v.painter, "", v.width)
}
