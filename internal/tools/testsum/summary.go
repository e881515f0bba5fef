package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/tools/testevent"
)

// A test is one test function, subtest or script of one package.
type test struct {
	pkg, name string
	action    string // last of run, pass, fail, skip; "": only a part of a subtest's name
	elapsed   float64
	output    strings.Builder
	parent    bool // it has subtests: these are counted and not it
}

// A pack is one package's run.
type pack struct {
	action  string // start, then pass, fail or skip
	elapsed float64
	build   string // the build that failed, if one did
	output  strings.Builder
	tests   map[string]*test
}

// A summary collects events.
type summary struct {
	packs    map[string]*pack
	builds   map[string]*strings.Builder
	features map[string]bool // of the kernel under test; nil: ask this one
}

func newSummary() *summary {
	return &summary{packs: map[string]*pack{}, builds: map[string]*strings.Builder{}}
}

// add takes one event. It returns the package that it ended, if it did.
func (s *summary) add(e testevent.Event) (ended string) {
	switch {
	case e.Action == "features":
		s.features = e.Features
		return ""
	case e.Action == "build-output":
		b := s.builds[e.ImportPath]
		if b == nil {
			b = &strings.Builder{}
			s.builds[e.ImportPath] = b
		}
		b.WriteString(e.Output)
		return ""
	case e.Package == "":
		return ""
	}
	p := s.packs[e.Package]
	if p == nil {
		p = &pack{action: "start", tests: map[string]*test{}}
		s.packs[e.Package] = p
	}
	if e.Test == "" {
		switch e.Action {
		case "output":
			p.output.WriteString(e.Output)
		case "pass", "fail", "skip":
			p.action, p.elapsed, p.build = e.Action, e.Elapsed, e.FailedBuild
			return e.Package
		}
		return ""
	}
	p.test(e.Package, e.Test).add(e)
	return ""
}

func (p *pack) test(pkg, name string) *test {
	t := p.tests[name]
	if t == nil {
		t = &test{pkg: pkg, name: name}
		p.tests[name] = t
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			p.test(pkg, name[:i]).parent = true
		}
	}
	return t
}

func (t *test) add(e testevent.Event) {
	switch e.Action {
	case "run":
		t.action = "run"
	case "output":
		t.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		t.action, t.elapsed = e.Action, e.Elapsed
	}
}

// sorted lists a package's tests by name.
func (p *pack) sorted() []*test {
	var all []*test
	for _, name := range slices.Sorted(maps.Keys(p.tests)) {
		all = append(all, p.tests[name])
	}
	return all
}

// failedBelow reports whether a subtest of t explains its failure.
func (p *pack) failedBelow(t *test) bool {
	for name, other := range p.tests {
		if strings.HasPrefix(name, t.name+"/") && (other.action == "fail" || other.action == "run") {
			return true
		}
	}
	return false
}

// A failure is one thing to mend.
type failure struct {
	title, output string
}

// A result is the whole run, ready to print.
type result struct {
	passed   int
	failures []failure
	skips    map[string][]string // feature -> tests
	slowest  []*test
}

func newResult() *result {
	return &result{skips: map[string][]string{}}
}

// result judges what was collected.
func (s *summary) result() *result {
	r := newResult()
	for _, pkg := range slices.Sorted(maps.Keys(s.packs)) {
		s.judge(r, pkg)
	}
	if len(s.packs) == 0 {
		r.failures = append(r.failures, failure{"no test ran", ""})
	}
	slices.SortStableFunc(r.slowest, func(a, b *test) int {
		switch {
		case a.elapsed > b.elapsed:
			return -1
		case a.elapsed < b.elapsed:
			return 1
		}
		return 0
	})
	return r
}

// judge adds one package to a result.
func (s *summary) judge(r *result, pkg string) {
	p := s.packs[pkg]
	before := len(r.failures)
	p.endBenchmarks()
	for _, t := range p.sorted() {
		r.judge(p, t, s.has)
	}
	switch {
	case p.build != "":
		out := ""
		if b := s.builds[p.build]; b != nil {
			out = b.String()
		}
		r.failures = append(r.failures, failure{pkg + ": does not build", out})
	case p.action == "start":
		r.failures = append(r.failures, failure{pkg + ": ended without a result", p.output.String()})
	case p.action == "fail" && len(r.failures) == before:
		r.failures = append(r.failures, failure{pkg + ": failed outside its tests", p.output.String()})
	}
}

// unended lists the packages of which no end was told.
func (s *summary) unended() []string {
	var all []string
	for _, pkg := range slices.Sorted(maps.Keys(s.packs)) {
		if s.packs[pkg].action == "start" {
			all = append(all, pkg)
		}
	}
	return all
}

func (r *result) judge(p *pack, t *test, has func(string) (bool, error)) {
	title := t.pkg + " " + t.name
	if !t.parent {
		r.slowest = append(r.slowest, t)
	}
	switch t.action {
	case "":
	case "pass":
		if !t.parent {
			r.passed++
		}
	case "skip":
		if t.parent && p.skippedBelow(t) {
			return
		}
		feature, err := police(t.output.String(), has)
		if err != nil {
			r.failures = append(r.failures, failure{title + ": " + err.Error(), t.output.String()})
			return
		}
		r.skips[feature] = append(r.skips[feature], title)
	default:
		if p.failedBelow(t) {
			return
		}
		if t.action == "run" {
			title += ": did not end"
		}
		r.failures = append(r.failures, failure{title, p.said(t)})
	}
}

// misplaced is what a test says that was ended by a Fatal on the t of a test above it. What
// happened is in that one's output.
const misplaced = "subtest may have called FailNow on a parent test"

// said is the output of a test that failed; where it only points at its parents, theirs as well.
func (p *pack) said(t *test) string {
	said := t.output.String()
	if !strings.Contains(said, misplaced) {
		return said
	}
	for i := len(t.name) - 1; i > 0; i-- {
		if above := p.tests[t.name[:i]]; t.name[i] == '/' && above != nil {
			said += above.output.String()
		}
	}
	return said
}

// endBenchmarks marks those that passed: go test tells only of others how they
// ended.
func (p *pack) endBenchmarks() {
	for _, t := range p.tests {
		if p.action != "start" && t.action == "run" && strings.HasPrefix(t.name, "Benchmark") {
			t.action = "pass"
		}
	}
}

func (p *pack) skippedBelow(t *test) bool {
	for name, other := range p.tests {
		if strings.HasPrefix(name, t.name+"/") && other.action == "skip" {
			return true
		}
	}
	return false
}

func (r *result) skipped() (n int) {
	for _, tests := range r.skips {
		n += len(tests)
	}
	return n
}

// String is the summary line.
func (r *result) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", r.passed, len(r.failures), r.skipped())
}
