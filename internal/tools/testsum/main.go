package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/testutil/feature"
	"github.com/weir-net/weir/internal/tools/testevent"
)

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if errors.Is(err, errFailed) {
		os.Exit(1)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(64)
	}
}

// errFailed says that the summary itself tells what is wrong.
var errFailed = errors.New("tests failed")

func run(args []string, in io.Reader, out, errs io.Writer) error {
	flags := flag.NewFlagSet("testsum", flag.ContinueOnError)
	flags.SetOutput(errs)
	counts := flags.String("counts", "", "append the three numbers to `FILE`, for a total over several runs")
	label := flags.String("label", "", "begin the summary line with `TEXT:` and name the skips in it; packages that passed are not printed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := newSummary()
	err := testevent.Read(in, out, func(e testevent.Event) {
		if pkg := s.add(e); pkg != "" && *label == "" {
			s.progress(out, pkg)
		}
	})
	if err != nil {
		return err
	}
	r := s.result()
	if *label == "" {
		for _, pkg := range s.unended() {
			s.progress(out, pkg)
		}
		printSkips(out, r)
		printSlowest(out, r)
	}
	if *label == "" {
		printTitles(out, r)
	} else {
		printFailures(out, r)
	}
	if *counts != "" {
		if err := appendCounts(*counts, r); err != nil {
			return err
		}
	}
	line := r.String()
	if *label != "" {
		line = *label + ": " + line + reasons(r)
	}
	fmt.Fprintln(out, line)
	if len(r.failures) > 0 {
		return errFailed
	}
	return nil
}

// has answers from the events where they came from another kernel, and else by
// asking this one.
func (s *summary) has(name string) (bool, error) {
	if s.features == nil {
		return feature.Has(name)
	}
	ok, known := s.features[name]
	if !known {
		return false, fmt.Errorf("probe %q: %w", name, feature.ErrUnknown)
	}
	return ok, nil
}

// progress prints a package's line as it ends, and what failed in it.
func (s *summary) progress(out io.Writer, pkg string) {
	p := s.packs[pkg]
	if len(p.tests) == 0 && p.action != "fail" {
		return
	}
	r := newResult()
	s.judge(r, pkg)
	word := "ok"
	if len(r.failures) > 0 {
		word = "FAIL"
	}
	fmt.Fprintf(out, "%-5s %-60s %6.1f s\n", word, pkg, p.elapsed)
	printFailures(out, r)
}

func printSkips(out io.Writer, r *result) {
	for _, feature := range slices.Sorted(maps.Keys(r.skips)) {
		fmt.Fprintf(out, "\nskipped for want of %s:\n", feature)
		for _, name := range r.skips[feature] {
			fmt.Fprintf(out, "  %s\n", name)
		}
	}
}

func printSlowest(out io.Writer, r *result) {
	title := "\nslowest:\n"
	for _, t := range r.slowest[:min(5, len(r.slowest))] {
		if t.elapsed >= 1 {
			fmt.Fprintf(out, "%s  %6.1f s  %s %s\n", title, t.elapsed, t.pkg, t.name)
			title = ""
		}
	}
}

func printFailures(out io.Writer, r *result) {
	for _, f := range r.failures {
		fmt.Fprintf(out, "\nFAILED %s\n", f.title)
		for line := range strings.Lines(f.output) {
			fmt.Fprintf(out, "  %s", line)
		}
	}
	if len(r.failures) > 0 {
		fmt.Fprintln(out)
	}
}

// printTitles names once more, beside the summary, what was printed in full as
// it came.
func printTitles(out io.Writer, r *result) {
	fmt.Fprintln(out)
	for _, f := range r.failures {
		fmt.Fprintf(out, "FAILED %s\n", f.title)
	}
}

func reasons(r *result) string {
	var all []string
	for _, feature := range slices.Sorted(maps.Keys(r.skips)) {
		all = append(all, fmt.Sprintf("%d needs %s", len(r.skips[feature]), feature))
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

func appendCounts(path string, r *result) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, r.passed, len(r.failures), r.skipped())
	return errors.Join(err, f.Close())
}
