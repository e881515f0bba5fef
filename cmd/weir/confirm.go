package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
)

func (c *cli) confirm() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm",
		Short: "Keep what weir apply --confirm changed",
		Long: `Keep what weir apply --confirm changed. It may come from any root shell; no
command that reads confirms. Where it comes too late, exit code 3 says that the
change was rolled back.`,
		Example: `  sudo weir apply --confirm 90s policy.yaml
  sudo weir confirm`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			s, err := a.Status(cmd.Context())
			if err != nil {
				return fmt.Errorf("confirm: %w", err)
			}
			err = patiently(cmd.Context(), amongFew, a.Confirm)
			if errors.Is(err, agent.ErrNothingPending) && rolledBackLast(s) {
				return coded{code: exitRolledBack, error: &hinted{
					fmt.Errorf("confirm: too late: rolled back at %s: %s", s.Rollback.When.Local().Format(time.DateTime), s.Rollback.Reason),
					[]string{"weir apply --confirm 90s FILE tries again"},
				}}
			}
			if errors.Is(err, agent.ErrUnfinished) {
				err = &hinted{err, []string{"weir rollback takes it back"}}
			}
			if err != nil {
				return fmt.Errorf("confirm: %w", err)
			}
			_, err = fmt.Fprintf(c.stdout, "Kept.\n%s\n", verdictLine(c.paint(c.stdout), s.OK, s.Verdict))
			return err
		},
	}
}

func (c *cli) rollback() *cobra.Command {
	return &cobra.Command{
		Use:   "rollback",
		Short: "Take back what weir apply --confirm changed, now",
		Long: `Take back what weir apply --confirm changed, without waiting for its time to
pass, and prove it by reading the kernel. The policy before is in force again.`,
		Example: `  sudo weir apply --confirm 90s policy.yaml
  sudo weir rollback`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			progress := c.progress()
			a.Progress = progress.step
			// Half a rollback is worse than one that a signal has to wait for.
			ctx := context.WithoutCancel(cmd.Context())
			err = patiently(ctx, amongFew, func() error { return a.Rollback(ctx, "weir rollback was called") })
			progress.end()
			if err != nil {
				return fmt.Errorf("rollback: %w", err)
			}
			s, err := a.Status(ctx)
			if err != nil {
				return fmt.Errorf("rolled back; and look at it: %w", err)
			}
			_, err = fmt.Fprintf(c.stdout, "Rolled back.\n%s\n", verdictLine(c.paint(c.stdout), s.OK, s.Verdict))
			return err
		},
	}
}
