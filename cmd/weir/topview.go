package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
)

// topSorts are the columns by which rows can be sorted; all but names have the most first.
var topSorts = []string{"sent", "received", "limit", "dropped", "holds", "sockets", "name"}

// A topView renders what happens under contracts for a terminal: the verdict, the links, the
// host's TCP memory, and a row for each workload.
type topView struct {
	painter
	sort  string
	links bool // a row for each link as well
	keys  bool // there are keys to be told
}

// key does what a key asks for.
func (v *topView) key(key string) {
	next := func(by int) {
		at := slices.Index(topSorts, v.sort)
		v.sort = topSorts[(at+by+len(topSorts))%len(topSorts)]
	}
	switch key {
	case "s", "right":
		next(1)
	case "S", "left":
		next(-1)
	case "l":
		v.links = !v.links
	}
}

// render is for a screen, or where its height is 0 for text that stays.
func (v *topView) render(t *agent.Top, width, height int) string {
	var b strings.Builder
	room := height // for rows
	for _, line := range v.head(t, width, height) {
		b.WriteString(line + "\n")
		room--
	}
	foot := v.foot(width, height)
	if height > 0 {
		room -= 1 + len(foot) // the titles
	} else {
		room = math.MaxInt
	}
	rows := slices.DeleteFunc(slices.Clone(t.Rows), hidden)
	if len(t.Links) == 0 { // then nobody counts what is sent, and rows of nobody have nothing to say
		rows = slices.DeleteFunc(rows, plan.Row.Nobodys)
	}
	v.table(&b, rows, len(t.Links) > 0, width, room)
	for _, line := range foot {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// roomy is from which height on there are empty lines.
const roomy = 15

// head is what stands above the rows. On a screen each is one line, and of many links only
// the first.
func (v *topView) head(t *agent.Top, width, height int) (lines []string) {
	add := func(text string, colour func(string) string) {
		parts := []string{cut(text, width)}
		if height == 0 {
			parts = fold(text, width)
		}
		for _, part := range parts {
			if colour != nil {
				part = colour(part)
			}
			lines = append(lines, part)
		}
	}
	verdict := v.green
	if !t.OK {
		verdict = v.red
	}
	add(t.Verdict, verdict)
	shown := t.Links
	if most := max(1, height/8); height > 0 && len(shown) > most+1 { // that there are more takes a line, too
		shown = shown[:most]
	}
	for _, l := range shown {
		add(linkLine(l), nil)
	}
	if n := len(t.Links) - len(shown); n > 0 {
		add(fmt.Sprintf("and %s (--json has all)", count(n, "link")), v.dim)
	}
	add(memoryLine(t.TCPMemory), v.pressure(t.TCPMemory))
	if height > 0 && height < roomy {
		return lines
	}
	return append(lines, "")
}

func linkLine(l plan.LinkSpeed) string {
	text := l.Link + ": " + bits(l.Sent.Bits) + " out"
	if l.Rate != 0 {
		text += fmt.Sprintf(" (%s of %s)", percent(l.Used()), l.Rate)
	}
	text += ", " + bits(l.Received.Bits) + " in"
	if l.Dropped > 0 {
		text += ", " + perSecond(l.Dropped) + " dropped/s"
	}
	return text
}

func (v *topView) foot(width, height int) []string {
	if !v.keys {
		return nil
	}
	lines := []string{v.dim(cut("q quit   s sort: "+v.sort+"   l links", width))}
	if height >= roomy {
		lines = append([]string{""}, lines...)
	}
	return lines
}

// table shows as many rows as there is room for; what is nobody's stays.
func (v *topView) table(b *strings.Builder, rows []plan.Row, counted bool, width, room int) {
	t := table{columns: []column{
		{title: "workload"}, {title: "link"}, {title: "sent", right: true}, {title: "packets/s", right: true, rank: 4},
		{title: "received", right: true, rank: 2}, {title: "limit", right: true, rank: 1}, {title: "dropped/s", right: true, rank: 3},
		{title: "marked/s", right: true, rank: 6}, {title: "holds", right: true, rank: 3}, {title: "bound", right: true, rank: 2},
		{title: "highest", right: true, rank: 7}, {title: "throttled", right: true, rank: 8}, {title: "refused", right: true, rank: 7},
		{title: "sockets", right: true, rank: 5},
	}}
	v.order(rows)
	var lines [][]cell
	first := 0 // of those that stay
	for _, r := range rows {
		cells := v.cells(r)
		if !counted {
			cells[0][2].text, cells[0][3].text = "", ""
		}
		lines = append(lines, cells...)
		if !r.Nobodys() {
			first += len(cells)
		}
	}
	left := 0
	if over := len(lines) - room; over > 0 {
		left = min(over+1, first) // a line says so
		lines = slices.Delete(lines, first-left, first)
		first -= left
	}
	if left > 0 {
		lines = slices.Insert(lines, first, more(left, len(t.columns)))
	}
	for _, cells := range lines[:min(len(lines), room)] {
		t.add(cells...)
	}
	t.render(b, v.painter, "", width)
}

// more is a row in the place of others.
func more(n, columns int) []cell {
	cells := make([]cell, columns)
	cells[0].text = fmt.Sprintf("… %d more", n)
	return cells
}

// hidden are rows that are nobody's and have nothing to say.
func hidden(r plan.Row) bool {
	return (r.Workload == plan.RowUnclassified || r.Workload == plan.RowUnattributed) && math.Abs(r.Sent.Bits) < 1 && (r.Received == nil || math.Abs(r.Received.Bits) < 1)
}

// order sorts the rows of workloads; those of nobody stay behind them.
func (v *topView) order(rows []plan.Row) {
	of := func(r plan.Row) float64 {
		switch v.sort {
		case "received":
			if r.Received != nil {
				return r.Received.Bits
			}
		case "limit":
			if r.Limit != nil {
				return r.Limit.Percent
			}
			return -1
		case "dropped":
			return r.Dropped
		case "holds":
			return float64(r.Holds)
		case "sockets":
			return float64(r.Sockets)
		case "sent":
			return r.Sent.Bits
		}
		return 0
	}
	end := slices.IndexFunc(rows, plan.Row.Nobodys)
	if end < 0 {
		end = len(rows)
	}
	slices.SortStableFunc(rows[:end], func(a, b plan.Row) int { return cmp.Compare(of(b), of(a)) })
}

// cells is a row, and below it what it sends on each link if that is asked for.
func (v *topView) cells(r plan.Row) [][]cell {
	name := r.Workload
	if name == plan.RowUnattributed && r.Sent.Bits < 0 {
		name = "(not counted)"
	}
	first := append(plainCells(name, "", bits(r.Sent.Bits), perSecond(r.Sent.Packets)), make([]cell, 10)...)
	if r.Received != nil {
		first[4].text = bits(r.Received.Bits)
	}
	if r.Limit != nil {
		first[5] = cell{percent(r.Limit.Percent), v.near(r.Limit.Percent)}
	}
	if r.Dropped > 0 {
		first[6] = cell{perSecond(r.Dropped), v.yellow}
	}
	if r.Marked > 0 {
		first[7].text = perSecond(r.Marked)
	}
	if r.Holds > 0 {
		first[8].text = amount(r.Holds)
	}
	if r.Memory != nil {
		first[9] = cell{percent(r.Memory.Full()), v.fullness(r.Memory)}
		first[10].text = amount(r.Memory.Pool.Most)
		first[11].text = grouped(r.Memory.Pool.Throttled)
		first[12].text = grouped(r.Memory.Pool.Refused)
	}
	if r.Sockets > 0 {
		first[13].text = grouped(uint64(r.Sockets))
	}
	all := [][]cell{first}
	if v.links {
		for _, l := range r.Links {
			all = append(all, append(plainCells("", l.Link, bits(l.Sent.Bits), perSecond(l.Sent.Packets)), make([]cell, 10)...))
		}
	}
	return all
}

// near is how what is close to its limit looks.
func (p painter) near(percent float64) func(string) string {
	if percent >= 90 {
		return p.yellow
	}
	return nil
}
