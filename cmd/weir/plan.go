package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// A planReport is the JSON of weir plan.
type planReport struct {
	SchemaVersion string            `json:"schema_version"`
	Policy        string            `json:"policy"`
	Differences   []plan.Difference `json:"differences"`
	Steps         []agent.Step      `json:"steps,omitempty"`      // with --steps
	Unfinished    string            `json:"unfinished,omitempty"` // a change that was broken off, in words
	Summary       string            `json:"summary"`
}

type planFlags struct {
	save            string
	steps, exitCode bool
	json            bool
}

func (c *cli) plan() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [--steps] [-o PLAN] [--detailed-exitcode] [--json] FILE",
		Short: "Show what apply would change",
		Long: `Show what apply would change, one line for each object: + is new, ~ changes,
- goes away. Nothing is changed. With -o the plan is saved for weir apply, which
refuses it where the host has changed meanwhile. FILE may be - for standard input.`,
		Example: `  sudo weir plan policy.yaml
  sudo weir plan --steps policy.yaml             what apply does, step by step
  sudo weir plan -o today.plan policy.yaml && sudo weir apply today.plan`,
		Args:              exactly("FILE"),
		ValidArgsFunction: policyFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.runPlan(cmd, args[0], f) },
	}
	cmd.Flags().BoolVar(&f.steps, "steps", false, "say in words what apply does, step by step")
	cmd.Flags().StringVarP(&f.save, "output", "o", "", "save the plan in a `FILE` for weir apply")
	cmd.Flags().BoolVar(&f.exitCode, "detailed-exitcode", false, "end with exit code 2 if there are differences")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (c *cli) runPlan(cmd *cobra.Command, file string, f planFlags) error {
	ctx := cmd.Context()
	p, err := c.policy(ctx, file)
	if err != nil {
		return err
	}
	a, err := c.privileged(cmd)
	if err != nil {
		return err
	}
	report, err := draft(ctx, a, p.Policy, f.steps)
	if err != nil {
		return p.located(err)
	}
	if f.save != "" {
		if err := save(f.save, a, c.now(), p, report.Differences); err != nil {
			return err
		}
	}
	if f.json {
		err = c.printJSON(report)
	} else {
		err = printPlan(c.stdout, c.paint(c.stdout), report)
	}
	if err == nil && f.save != "" && !f.json {
		_, err = fmt.Fprintf(c.stdout, "Saved in %s: weir apply %s\n", f.save, shellWord(f.save))
	}
	if err == nil && f.exitCode && (len(report.Differences) > 0 || report.Unfinished != "") {
		return told(exitDiffers)
	}
	return err
}

func draft(ctx context.Context, a *agent.Agent, p *policy.Policy, steps bool) (r planReport, err error) {
	if err := needsCgroup2(a, p); err != nil {
		return r, err
	}
	r = planReport{SchemaVersion: schemaVersion, Policy: p.File}
	if r.Differences, err = a.Plan(ctx, p); err != nil {
		return r, err
	}
	if steps {
		if r.Steps, err = a.Steps(ctx, p); err != nil {
			return r, err
		}
	}
	record, err := a.Scope.Load()
	if err != nil {
		return r, err
	}
	if j := record.Journal; j != nil {
		r.Unfinished = fmt.Sprintf("%s was broken off at step %d of %d (%s); apply finishes it", j.Verb, j.Step, j.Steps, j.Text)
	}
	r.Summary = plan.Summary(r.Differences)
	if r.Differences == nil {
		r.Differences = []plan.Difference{}
	}
	return r, nil
}

func printPlan(w io.Writer, paint painter, r planReport) error {
	var b strings.Builder
	if r.Unfinished != "" {
		fmt.Fprintf(&b, "%s %s\n", paint.yellow("unfinished:"), r.Unfinished)
	}
	printDifferences(&b, paint, r.Differences)
	if len(r.Steps) > 0 {
		b.WriteString("\nStep by step:\n")
	}
	for i, s := range r.Steps {
		fmt.Fprintf(&b, "%4d  %s\n", i+1, s.Text)
		for _, part := range s.Parts {
			fmt.Fprintf(&b, "        %s\n", paint.dim(part))
		}
	}
	if len(r.Steps) > 0 {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s\n", r.Summary)
	_, err := io.WriteString(w, b.String())
	return err
}

func printDifferences(b *strings.Builder, paint painter, all []plan.Difference) {
	colours := map[plan.Op]func(string) string{plan.Add: paint.green, plan.Change: paint.yellow, plan.Remove: paint.red}
	for _, d := range all {
		fmt.Fprintf(b, "%s %s: %s\n", colours[d.Op](string(d.Op)), d.Object, d.Detail)
	}
}
