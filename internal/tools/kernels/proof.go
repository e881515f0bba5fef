package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/tools/testevent"
)

// A State is what became of a promise on a kernel.
type State string

// The states. Missing and Broken are faults.
const (
	Proven     State = "proven"
	Lower      State = "proven on a lower rung"
	Impossible State = "not possible"
	Broken     State = "broken"
	Missing    State = "not tested"
)

// A Cell is one promise on one kernel.
type Cell struct {
	State State    `json:"state"`
	Rungs []string `json:"rungs,omitempty"` // those that were shown, the best first
	Why   []string `json:"why,omitempty"`   // what is lacking, or the tests that failed
}

// A Run is the column of one kernel.
type Run struct {
	Name   string                    `json:"name"`   // such as "6.1" or "6.1 hybrid"
	Kernel string                    `json:"kernel"` // its release
	Cells  map[testutil.Promise]Cell `json:"cells"`
}

// A proof is a test that stands for a promise.
type proof struct {
	name    string
	promise testutil.Promise
	rung    string
	action  string // pass, fail, skip; "" did not end
	output  strings.Builder
}

// readRun makes a column of the events of a run.
func readRun(name string, events io.Reader) (Run, error) {
	r := Run{Name: name, Cells: map[testutil.Promise]Cell{}}
	tests := map[string]*proof{}
	features := map[string]bool{}
	err := testevent.Read(events, io.Discard, func(e testevent.Event) {
		if e.Action == "features" {
			r.Kernel, features = e.Kernel, e.Features
		}
		if e.Test == "" {
			return
		}
		key := e.Package + " " + e.Test
		p := tests[key]
		if p == nil {
			p = &proof{name: e.Test}
			tests[key] = p
		}
		p.add(e)
	})
	if err != nil {
		return r, err
	}
	proofs := map[testutil.Promise][]*proof{}
	for _, key := range slices.Sorted(maps.Keys(tests)) {
		if p := tests[key]; p.promise != "" {
			proofs[p.promise] = append(proofs[p.promise], p)
		}
	}
	for id, proofs := range proofs {
		if !slices.ContainsFunc(promises, func(p promise) bool { return p.id == id }) {
			return r, fmt.Errorf("%s proves %q, which is no promise of this page", proofs[0].name, id)
		}
	}
	for _, p := range r.rows() {
		if r.Cells[p.id], err = p.judge(proofs[p.id], features); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (p *proof) add(e testevent.Event) {
	switch e.Action {
	case "attr":
		switch e.Key {
		case testutil.PromiseAttr:
			p.promise = testutil.Promise(e.Value)
		case testutil.RungAttr:
			p.rung = e.Value
		}
	case "output":
		p.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		p.action = e.Action
	}
}

// judge makes a cell of the proofs of the promise on a kernel with those features.
func (p promise) judge(proofs []*proof, features map[string]bool) (Cell, error) {
	if len(proofs) == 0 {
		return Cell{State: Missing}, nil
	}
	var failed, lacks []string
	shown := map[string]bool{}
	for _, proof := range proofs {
		if proof.rung != "" && len(p.ladder) > 0 && !slices.Contains(p.ladder, proof.rung) {
			return Cell{}, fmt.Errorf("%s stands on %q, which is no rung of %q", proof.name, proof.rung, p.id)
		}
		switch proof.action {
		case "pass":
			if proof.rung == "" && len(p.ladder) > 0 {
				return Cell{}, fmt.Errorf("%s proves %q and names no rung", proof.name, p.id)
			}
			shown[proof.rung] = true
		case "skip":
			lacks = append(lacks, "no "+testevent.Needs(proof.output.String()))
		default:
			failed = append(failed, proof.name)
		}
	}
	if len(failed) > 0 {
		return Cell{State: Broken, Why: failed}, nil
	}
	if len(shown) == 0 {
		slices.Sort(lacks)
		return Cell{State: Impossible, Why: slices.Compact(lacks)}, nil
	}
	c := Cell{State: Proven}
	for _, rung := range p.ladder {
		switch {
		case shown[rung]:
			c.Rungs = append(c.Rungs, rung)
		case len(c.Rungs) == 0:
			c.State = Lower
			why := "no " + needs[rung]
			if features[needs[rung]] {
				why = needs[rung] + " is there, and was not shown"
			}
			c.Why = append(c.Why, why)
		}
	}
	return c, nil
}
