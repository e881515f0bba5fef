package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/lab"
	"github.com/weir-net/weir/internal/lab/scoped"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

type labFlags struct {
	rate         rateFlag
	repetitions  int
	scheduler    string
	output, keep string
	json         bool
}

func (c *cli) labRun() *cobra.Command {
	var f labFlags
	cmd := &cobra.Command{
		Use:   "run [--rate RATE] [--repetitions N] [--scheduler NAME] [-o PAGE] [--keep FILE] [--json] NAME",
		Short: "Run a lab: a table, and a page with plots",
		Long: `Run a lab. It takes from one minute to half an hour, prints a table and writes one HTML
page with plots, the environment and the raw data that needs nothing else. Exit code 5
says that the lab did not show what it should. With --json the result alone goes to
standard output, and a page is written only where -o says so.`,
		Example: `  sudo weir lab run ssh
  sudo weir lab run ssh --rate 1Gbit -o ssh.html
  sudo weir lab run priority --json > priority.json`,
		Args:              exactly("NAME"),
		ValidArgsFunction: first(labNames()...),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.runLab(cmd, args[0], f) },
	}
	cmd.Flags().Var(&f.rate, "rate", "`RATE` of the bottleneck (100Mbit); of lab rates the only limit")
	cmd.Flags().IntVar(&f.repetitions, "repetitions", 0, "run each arm `N` times, 1 to 100; 0 leaves it to the lab")
	schedulers := []string{string(policy.Auto), string(policy.MQPrio), string(policy.Prio), string(policy.ETS), string(policy.HTB), string(policy.FQ)}
	cmd.Flags().Var(oneOf(&f.scheduler, schedulers...), "scheduler", "what keeps the order: `NAME` is auto, mqprio, prio, ets, htb or fq")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write the `PAGE` here (./weir-lab-NAME.html)")
	cmd.Flags().StringVar(&f.keep, "keep", "", "keep the result as JSON in a `FILE`")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
	_ = cmd.RegisterFlagCompletionFunc("scheduler", cobra.FixedCompletions(schedulers, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("rate", cobra.FixedCompletions([]string{"100Mbit", "1Gbit"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("repetitions", cobra.NoFileCompletions)
	return cmd
}

func (c *cli) runLab(cmd *cobra.Command, name string, f labFlags) error {
	if names := labNames(); !slices.Contains(names, name) {
		return &usageError{fmt.Sprintf("no lab %q", name), didYouMean(name, names, "weir lab list")}
	}
	if f.repetitions < 0 || f.repetitions > 100 {
		return &usageError{fmt.Sprintf("--repetitions %d is not between 1 and 100", f.repetitions), "6 or more give a confidence above 95 %"}
	}
	if _, err := c.privileged(cmd); err != nil {
		return err
	}
	if err := lab.Possible(name); err != nil {
		return err
	}
	for _, path := range []string{f.output, f.keep} {
		if err := writable(path); err != nil {
			return err
		}
	}
	r, err := c.experiment(cmd.Context(), name, f)
	if err != nil {
		return err
	}
	err = c.showLab(r, f)
	if f.keep != "" { // even where it could not be shown
		err = errors.Join(err, writeResult(f.keep, r))
	}
	if err == nil && broken(r) {
		return told(exitBroken)
	}
	return err
}

// experiment runs the lab in a scope that is gone afterwards.
func (c *cli) experiment(ctx context.Context, name string, f labFlags) (r report.Result, err error) {
	controller, err := scoped.New(version())
	if err != nil {
		return r, err
	}
	defer func() {
		if left := controller.Close(); left != nil {
			err = errors.Join(err, leftBehind{left})
		}
	}()
	progress := c.progress()
	defer progress.end()
	return lab.Run(ctx, name, lab.Options{
		Controller: controller, Rate: f.rate.value, Repetitions: f.repetitions, Scheduler: policy.Scheduler(f.scheduler),
		Version: version(), Command: f.command(name), Progress: progress.step, Now: c.now,
	})
}

// command repeats the run.
func (f labFlags) command(name string) string {
	words := []string{"weir", "lab", "run", name}
	if f.rate.value != 0 {
		words = append(words, "--rate", f.rate.value.String())
	}
	if f.repetitions != 0 {
		words = append(words, "--repetitions", strconv.Itoa(f.repetitions))
	}
	if f.scheduler != string(policy.Auto) {
		words = append(words, "--scheduler", f.scheduler)
	}
	return shellLine(words)
}

func (c *cli) showLab(r report.Result, f labFlags) error {
	page := f.output
	if f.json {
		if err := c.printJSON(r); err != nil {
			return err
		}
	} else {
		style := report.Style{Width: c.columns(c.stdout), Colour: c.paint(c.stdout).on}
		if err := report.Table(c.stdout, r, style); err != nil {
			return err
		}
		if page == "" {
			var err error
			if page, err = somewhere("weir-lab-" + r.Lab + ".html"); err != nil {
				return err
			}
		}
	}
	if page == "" {
		return nil
	}
	if err := writePage(page, r); err != nil {
		return err
	}
	if f.json {
		return nil
	}
	_, err := fmt.Fprintf(c.stdout, "\nPage: %s\n", page)
	return err
}
