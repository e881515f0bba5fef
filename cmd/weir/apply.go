package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// An applyReport is the JSON of weir apply.
type applyReport struct {
	SchemaVersion string            `json:"schema_version"`
	Policy        string            `json:"policy"`
	Changes       []plan.Difference `json:"changes"`
	Summary       string            `json:"summary"`
	ConfirmBefore *time.Time        `json:"confirm_before,omitempty"` // all is taken back then
	OK            bool              `json:"ok"`
	Verdict       string            `json:"verdict"` // over the promises, as weir status says it
	Warnings      []string          `json:"warnings,omitempty"`
}

type applyFlags struct {
	confirm time.Duration
	risk    string
	json    bool
}

// The shortest wait is what a person needs to type a word, the longest what a
// change may stand on trial.
const (
	shortestWait = 10 * time.Second
	longestWait  = 24 * time.Hour
)

func (c *cli) apply() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply [--confirm TIME] [--accept-risk RISK] [--json] FILE",
		Short: "Put a policy into force and prove it",
		Long: `Put a policy into force: all of it, or nothing. What was done is read back
from the kernel, and a second apply of the same policy changes nothing. FILE is a
policy, or a plan that weir plan -o saved; it may be - for standard input.

With --confirm everything is taken back after that time unless weir confirm
comes before, even if this session is dead by then. Where the change touches the
link that carries your ssh session, this or --accept-risk=lose-ssh is needed.`,
		Example: `  sudo weir apply --confirm 90s policy.yaml
  sudo weir confirm
  sudo weir apply today.plan                     a plan that weir plan -o saved`,
		Args:              exactly("FILE"),
		ValidArgsFunction: policyFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.runApply(cmd, args[0], f) },
	}
	cmd.Flags().Var(&waitFlag{&f.confirm, shortestWait, longestWait}, "confirm", "take everything back after a `TIME` (90s) unless weir confirm comes before")
	cmd.Flags().Var(&choice{&f.risk, []string{"lose-ssh"}}, "accept-risk", "apply without --confirm although the ssh session may be lost: `RISK` is lose-ssh")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	_ = cmd.RegisterFlagCompletionFunc("confirm", cobra.FixedCompletions([]string{"90s", "5m"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("accept-risk", cobra.FixedCompletions([]string{"lose-ssh"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *cli) runApply(cmd *cobra.Command, file string, f applyFlags) error {
	ctx := cmd.Context()
	text, err := c.read(ctx, file)
	if err != nil {
		return fmt.Errorf("read policy: %w", err)
	}
	name := file
	if file == "-" {
		name = "standard input"
	}
	planned := asSavedPlan(text)
	if planned != nil {
		name, text = planned.File, []byte(planned.Policy)
	}
	p, err := c.parse(name, text)
	if err != nil {
		return inPolicy(name, text, err)
	}
	a, err := c.privileged(cmd)
	if err != nil {
		return err
	}
	if err := needsCgroup2(a, p); err != nil {
		return err
	}
	if planned != nil {
		if err := planned.fresh(ctx, a, p); err != nil {
			return err
		}
	}
	if f.confirm == 0 && f.risk == "" {
		if err := c.keepSSH(ctx, a, p, file); err != nil {
			return inPolicy(name, text, err)
		}
	}
	report, err := c.change(ctx, a, p, text, f)
	if err != nil {
		return c.notApplied(ctx, inPolicy(name, text, err))
	}
	if f.json {
		err = c.printJSON(report)
	} else {
		for _, w := range report.Warnings {
			c.warn("%s", w)
		}
		err = printApply(c.stdout, c.paint(c.stdout), report, c.now())
	}
	if err == nil && !report.OK {
		return told(exitBroken)
	}
	return err
}

// change applies and asks whether it is so.
func (c *cli) change(ctx context.Context, a *agent.Agent, p *policy.Policy, text []byte, f applyFlags) (r applyReport, err error) {
	progress := c.progress()
	a.Progress = progress.step
	guard := watchDetach(a)
	defer func() {
		if r.ConfirmBefore == nil {
			guard.dismiss()
		}
	}()
	err = patiently(ctx, amongReaders, func() (err error) {
		if f.confirm == 0 {
			r.Changes, err = a.Apply(ctx, p, text)
		} else {
			r.Changes, err = a.ApplyUntilConfirmed(ctx, p, text, f.confirm)
		}
		return err
	})
	progress.end()
	if err != nil {
		return r, err
	}
	status, err := a.Status(ctx)
	if err != nil {
		return r, fmt.Errorf("applied; and look at it: %w", err)
	}
	r.SchemaVersion, r.Policy, r.Summary = schemaVersion, p.File, applied(r.Changes)
	r.OK, r.Verdict, r.Warnings = status.OK, status.Verdict, status.Warnings
	if status.Pending != nil {
		r.ConfirmBefore = &status.Pending.Deadline
	}
	if r.Changes == nil {
		r.Changes = []plan.Difference{}
	}
	return r, nil
}

// notApplied gives the failure of an apply its exit code. One that a signal
// ended says where that left the host.
func (c *cli) notApplied(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, agent.ErrRolledBack) {
		fmt.Fprintln(c.stderr, "interrupted: everything is as it was before")
	}
	if errors.Is(err, agent.ErrRolledBack) && errors.Is(err, agent.ErrNotProved) {
		return coded{error: err, code: exitRolledBack}
	}
	return err
}

// applied is plan.Summary in the past.
func applied(d []plan.Difference) string {
	n := map[plan.Op]int{}
	for _, x := range d {
		n[x.Op]++
	}
	if len(d) == 0 {
		return plan.Summary(d)
	}
	return fmt.Sprintf("Applied: %d added, %d changed, %d removed.", n[plan.Add], n[plan.Change], n[plan.Remove])
}

func printApply(w io.Writer, paint painter, r applyReport, now time.Time) error {
	var b strings.Builder
	printDifferences(&b, paint, r.Changes)
	fmt.Fprintf(&b, "%s\n%s\n", r.Summary, verdictLine(paint, r.OK, r.Verdict))
	if r.ConfirmBefore != nil {
		b.WriteString(untilConfirmed(paint, *r.ConfirmBefore, now))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// untilConfirmed says until when a change is on trial, and the two ways out.
func untilConfirmed(paint painter, deadline, now time.Time) string {
	return fmt.Sprintf("\n%s, in %s, unless it is confirmed:\n  weir confirm     keep it\n  weir rollback    take it back now\n",
		paint.yellow("Taken back at "+deadline.Local().Format(time.TimeOnly)), span(deadline.Sub(now)))
}

// span renders a time that is left or has passed: 90 s, 5 min, 3 h, 2 days.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Round(time.Hour).Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// A waitFlag is a flag with a time between two bounds.
type waitFlag struct {
	value       *time.Duration
	least, most time.Duration
}

func (w *waitFlag) String() string {
	if w.value == nil || *w.value == 0 {
		return ""
	}
	return w.value.String()
}

func (w *waitFlag) Type() string { return "duration" }

func (w *waitFlag) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return &usageError{"no time", "a number and a unit, as in 90s or 5m"}
	}
	if d < w.least || d > w.most {
		return &usageError{fmt.Sprintf("not from %s to %s", short(w.least), short(w.most)), "90s gives a person time to look"}
	}
	*w.value = d
	return nil
}

// short is Duration.String without the zeros behind: 24h.
func short(d time.Duration) string {
	text := d.String()
	if rest, ok := strings.CutSuffix(text, "m0s"); ok {
		text = rest + "m"
	}
	if rest, ok := strings.CutSuffix(text, "h0m"); ok {
		text = rest + "h"
	}
	return text
}
