package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	err := run(os.Args[1:], os.Stderr)
	if errors.Is(err, errUnproven) {
		os.Exit(1)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(64)
	}
}

// errUnproven says that what was printed tells what is wrong.
var errUnproven = errors.New("not all is proven")

func run(args []string, errs io.Writer) error {
	flags := flag.NewFlagSet("kernels", flag.ContinueOnError)
	flags.SetOutput(errs)
	data := flags.String("data", "", "write what the runs prove to `FILE`")
	write := flags.String("page", "", "write the page to `FILE`")
	against := flags.String("against", "", "hold the runs against the data of `FILE`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("name the directory with the events")
	}
	runs, err := readRuns(flags.Arg(0))
	if err != nil {
		return err
	}
	wrong := faults(runs)
	if *against != "" {
		before, err := load(*against)
		if err != nil {
			return err
		}
		wrong = append(wrong, changes(before, runs)...)
	}
	if *data != "" {
		if err := save(*data, runs); err != nil {
			return err
		}
	}
	if *write != "" {
		if err := os.WriteFile(*write, []byte(page(runs)), 0o644); err != nil {
			return err
		}
	}
	for _, w := range wrong {
		fmt.Fprintln(errs, w)
	}
	if len(wrong) > 0 {
		return errUnproven
	}
	return nil
}

// readRuns reads the runs of a directory, in the order of the page: kernels by
// age, other cgroup mounts of a kernel after it, and this host last.
func readRuns(dir string) ([]Run, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no NAME.json in %s", dir)
	}
	var runs []Run
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		r, err := readRun(strings.TrimSuffix(filepath.Base(path), ".json"), f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(slices.Compare(a.age(), b.age()), cmp.Compare(a.Name, b.Name)) })
	return runs, nil
}

// age orders the runs by the numbers that their names begin with.
func (r Run) age() []int {
	var major, minor int
	if n, _ := fmt.Sscanf(r.Name, "%d.%d", &major, &minor); n < 2 {
		major = 1 << 30
	}
	return []int{major, minor}
}

func load(path string) ([]Run, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var runs []Run
	if err := json.Unmarshal(text, &runs); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return runs, nil
}

func save(path string, runs []Run) error {
	text, err := json.MarshalIndent(runs, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
