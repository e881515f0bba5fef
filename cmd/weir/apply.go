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
link that carries your ssh session, or moves the last link with a default route
into a VRF or out of it, or changes that route there, this or
--accept-risk=lose-ssh is needed.`,
		Example: `  sudo weir apply --confirm 90s policy.yaml
  sudo weir confirm
  sudo weir apply today.plan                     a plan that weir plan -o saved`,
		Args:              exactly("FILE"),
		ValidArgsFunction: policyFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.runApply(cmd, args[0], f) },
	}
	cmd.Flags().Var(&waitFlag{&f.confirm, shortestWait, longestWait, "90s gives a person time to look"}, "confirm", "take everything back after a `TIME` (90s) unless weir confirm comes before")
	cmd.Flags().Var(&choice{&f.risk, []string{"lose-ssh"}}, "accept-risk", "apply without --confirm although the ssh session may be lost: `RISK` is lose-ssh")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	_ = cmd.RegisterFlagCompletionFunc("confirm", cobra.FixedCompletions([]string{"90s", "5m"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("accept-risk", cobra.FixedCompletions([]string{"lose-ssh"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *cli) runApply(cmd *cobra.Command, file string, f applyFlags) error {
	ctx := cmd.Context()
	p, planned, err := c.request(ctx, file)
	if err != nil {
		return err
	}
	a, err := c.privileged(cmd)
	if err != nil {
		return err
	}
	if err := needsCgroup2(a, p.Policy); err != nil {
		return err
	}
	// Asked under the lock, of the very reading that is acted on.
	a.Accept = func(proposed agent.Proposal) error {
		if planned != nil {
			if err := planned.fresh(proposed); err != nil {
				return err
			}
		}
		if f.confirm == 0 && f.risk == "" {
			return c.keepReach(a, proposed, file)
		}
		return nil
	}
	report, err := c.change(ctx, a, p, f)
	if err != nil {
		return c.notApplied(ctx, a, p.located(err))
	}
	if err := c.printApplied(report, f.json); err != nil {
		return err
	}
	if !report.OK {
		return told(exitBroken)
	}
	return nil
}

// change applies and says whether it is so.
func (c *cli) change(ctx context.Context, a *agent.Agent, p policyFile, f applyFlags) (r applyReport, err error) {
	progress := c.progress()
	a.Progress = progress.step
	var done *agent.Applied
	err = patiently(ctx, amongFew, func() (err error) {
		if f.confirm == 0 {
			done, err = a.Apply(ctx, p.Policy, p.text)
		} else {
			done, err = a.ApplyUntilConfirmed(ctx, p.Policy, p.text, f.confirm)
		}
		return err
	})
	progress.end()
	if err != nil {
		return r, err
	}
	status := done.Status
	r.SchemaVersion, r.Policy, r.Changes, r.Summary = schemaVersion, p.File, done.Changes, applied(done.Changes)
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
func (c *cli) notApplied(ctx context.Context, a *agent.Agent, err error) error {
	back := errors.Is(err, agent.ErrRolledBack)
	switch {
	case ctx.Err() != nil && back:
		fmt.Fprintln(c.stderr, "interrupted: everything is as it was before")
	case ctx.Err() != nil && halfDone(a):
		return leftBehind{err}
	case back && errors.Is(err, agent.ErrNotProved):
		return coded{error: err, code: exitRolledBack}
	}
	return err
}

// halfDone reports whether a change was broken off and not taken back.
func halfDone(a *agent.Agent) bool {
	r, err := a.Scope.Load()
	return err != nil || r.Journal != nil
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

func (c *cli) printApplied(r applyReport, asJSON bool) error {
	if asJSON {
		return c.printJSON(r)
	}
	for _, w := range r.Warnings {
		c.warn("%s", w)
	}
	return printApply(c.stdout, c.paint(c.stdout), r, c.now())
}

func printApply(w io.Writer, paint painter, r applyReport, now time.Time) error {
	var b strings.Builder
	printDifferences(&b, paint, r.Changes)
	fmt.Fprintf(&b, "%s\n%s\n", r.Summary, verdictLine(paint, r.OK, r.Verdict))
	if r.ConfirmBefore != nil {
		b.WriteString(untilConfirmed(paint, *r.ConfirmBefore, now, false))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// untilConfirmed says until when a change is on trial, and the ways out. Half a
// change can only be taken back.
func untilConfirmed(paint painter, deadline, now time.Time, half bool) string {
	unless := ", unless it is confirmed"
	if half {
		unless = ""
	}
	return fmt.Sprintf("\n%s, in %s%s:\n%s",
		paint.yellow("Taken back at "+deadline.Local().Format(time.TimeOnly)), span(deadline.Sub(now)), unless, waysOut(half))
}

func waysOut(half bool) string {
	const back = "  weir rollback    take it back now\n"
	if half {
		return back
	}
	return "  weir confirm     keep it\n" + back
}
