package main

import (
	"fmt"
	"slices"
)

// faults says what is wrong with the runs by themselves.
func faults(runs []Run) (all []string) {
	for _, r := range runs {
		for _, p := range r.rows() {
			switch c := r.Cells[p.id]; c.State {
			case Broken:
				all = append(all, fmt.Sprintf("%s: %q is broken: %v", r.Name, p.text, c.Why))
			case Missing, "":
				all = append(all, fmt.Sprintf("%s: %q was not tested", r.Name, p.text))
			}
		}
	}
	return all
}

// changes says where the runs show something else than the runs of before.
// Kernels that are in one of the two only are left out, and so is this host,
// which need not be the one that wrote the page.
func changes(before, runs []Run) (all []string) {
	for _, r := range runs {
		i := slices.IndexFunc(before, func(b Run) bool { return b.Name == r.Name })
		if i < 0 || r.Name == "host" {
			continue
		}
		for _, p := range r.rows() {
			was, is := before[i].Cells[p.id], r.Cells[p.id]
			if was.State != is.State || !slices.Equal(was.Rungs, is.Rungs) {
				all = append(all, fmt.Sprintf("%s: %q is %s, the page says %s", r.Name, p.text, is, was))
			}
		}
	}
	return all
}

// String is the cell for an error.
func (c Cell) String() string {
	if len(c.Rungs) == 0 {
		return string(c.State)
	}
	return fmt.Sprintf("%s %v", c.State, c.Rungs)
}
