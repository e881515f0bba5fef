package main

import (
	"fmt"
	"slices"
	"strings"
)

const head = `# What holds on which kernel

Each cell is what the tests showed on that kernel, and the rung by which: the best first, then others that were shown too. ↓ is a
lower rung than the best. The runs behind it are those of ` + "`.ci/run`" + `: it fails where a cell is broken, was not tested, or is no longer what this page
says. ` + "`make kernels`" + ` writes the page (` + "`internal/tools/kernels`" + `), ` + "`make test-vm`" + ` runs all tests on all of these kernels.

`

const between = `
Cgroups are mounted there as v2, beside which v1 hierarchies can be mounted. The promises that depend on it, under other mounts:

`

const tail = `
mqprio orders in hardware only, which no machine here has: it is shown to put every packet in its class's queue, not to order them.

`

// page writes the runs as a page of Markdown.
func page(runs []Run) string {
	var kernels, mounts []Run
	for _, r := range runs {
		if r.otherMounts() {
			mounts = append(mounts, r)
		} else {
			kernels = append(kernels, r)
		}
	}
	var b strings.Builder
	var notes []string
	b.WriteString(head)
	table(&b, &notes, kernels)
	if len(mounts) > 0 {
		b.WriteString(between)
		table(&b, &notes, mounts)
	}
	b.WriteString(tail)
	for i, note := range notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, note)
	}
	b.WriteString("\n| | kernel |\n|---|---|\n")
	for _, r := range runs {
		fmt.Fprintf(&b, "| %s | %s |\n", r.Name, r.Kernel)
	}
	return b.String()
}

// table writes the runs as columns, all of one kind.
func table(b *strings.Builder, notes *[]string, runs []Run) {
	if len(runs) == 0 {
		return
	}
	b.WriteString("| |")
	for _, r := range runs {
		fmt.Fprintf(b, " %s |", r.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(runs)) + "\n")
	for _, p := range runs[0].rows() {
		fmt.Fprintf(b, "| %s |", p.text)
		for _, r := range runs {
			fmt.Fprintf(b, " %s |", r.Cells[p.id].text(notes))
		}
		b.WriteString("\n")
	}
}

// text is the cell in words. What it has to say more becomes a note.
func (c Cell) text(notes *[]string) string {
	words := strings.Join(c.Rungs, ", ")
	switch c.State {
	case Proven:
		if words == "" {
			words = "proven"
		}
	case Lower:
		words = "↓ " + words
	case Impossible:
		words = "not possible"
	case Broken:
		words = "**BROKEN**"
	default:
		words = "**" + string(Missing) + "**"
	}
	if len(c.Why) == 0 {
		return words
	}
	note := strings.Join(c.Why, ", ")
	i := slices.Index(*notes, note)
	if i < 0 {
		i = len(*notes)
		*notes = append(*notes, note)
	}
	return fmt.Sprintf("%s (%d)", words, i+1)
}
