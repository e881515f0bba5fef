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
			progress(out, pkg, s.packs[pkg])
		}
	})
	if err != nil {
		return err
	}
	r := s.result(s.has)
	if *label == "" {
		printSkips(out, r)
		printSlowest(out, r)
	}
	printFailures(out, r)
	if *label == "" && len(r.failures) == 0 {
		fmt.Fprintln(out)
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

func progress(out io.Writer, pkg string, p *pack) {
	if len(p.tests) == 0 && p.action != "fail" {
		return
	}
	word := map[string]string{"pass": "ok", "skip": "ok", "fail": "FAIL"}[p.action]
	fmt.Fprintf(out, "%-5s %-60s %6.1f s\n", word, pkg, p.elapsed)
}

func printSkips(out io.Writer, r result) {
	for _, feature := range slices.Sorted(maps.Keys(r.skips)) {
		fmt.Fprintf(out, "\nskipped for want of %s:\n", feature)
		for _, name := range r.skips[feature] {
			fmt.Fprintf(out, "  %s\n", name)
		}
	}
}

func printSlowest(out io.Writer, r result) {
	title := "\nslowest:\n"
	for _, t := range r.slowest[:min(5, len(r.slowest))] {
		if t.elapsed >= 1 {
			fmt.Fprintf(out, "%s  %6.1f s  %s %s\n", title, t.elapsed, t.pkg, t.name)
			title = ""
		}
	}
}

func printFailures(out io.Writer, r result) {
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

func reasons(r result) string {
	var all []string
	for _, feature := range slices.Sorted(maps.Keys(r.skips)) {
		all = append(all, fmt.Sprintf("%d needs %s", len(r.skips[feature]), feature))
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

func appendCounts(path string, r result) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, r.passed, len(r.failures), r.skipped())
	return errors.Join(err, f.Close())
}
