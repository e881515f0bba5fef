package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
)

func (c *cli) status() *cobra.Command {
	var asJSON, wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status [--wait [--timeout TIME]] [--json]",
		Short: "Say whether the promises are kept, and by which evidence",
		Long: `Say whether the promises are kept, and by which evidence. Everything is read
back from the kernel. A promise is kept, broken, or not provable here. Exit code 5
says that one is broken, or that a change was broken off. Nothing is changed.`,
		Example: `  sudo weir status
  sudo weir status --wait --timeout 30s     until all promises are kept
  sudo weir status --json | jq '.promises[] | select(.verdict != "kept")'`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("timeout") && !wait {
				return &usageError{"--timeout has no use without --wait", "weir status --wait --timeout 30s"}
			}
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			s, err := a.Status(cmd.Context())
			if wait && err == nil && !s.OK {
				s, err = c.await(cmd.Context(), a, timeout)
			}
			if err == nil {
				var orphans []plan.Finding
				orphans, err = c.orphans()
				for _, f := range orphans {
					s.Warnings = append(s.Warnings, f.Text+", so it does not start: "+f.Mend)
				}
			}
			if err != nil {
				return fmt.Errorf("status: %w", err)
			}
			if asJSON {
				err = c.printJSON(s)
			} else {
				v := statusView{painter: c.paint(c.stdout), width: c.columns(c.stdout), now: c.now()}
				_, err = io.WriteString(c.stdout, v.render(s))
			}
			if err == nil && !s.OK {
				return told(exitBroken)
			}
			return err
		},
	}
	timeout = 30 * time.Second
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until all promises are kept")
	cmd.Flags().Var(&waitFlag{&timeout, time.Millisecond, longestWait, "30s is the default"}, "timeout", "with --wait: give up after a `TIME`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	_ = cmd.RegisterFlagCompletionFunc("timeout", cobra.NoFileCompletions)
	return cmd
}

// await looks again until all is well or the time has passed.
func (c *cli) await(ctx context.Context, a *agent.Agent, timeout time.Duration) (*agent.Status, error) {
	const look = 200 * time.Millisecond
	progress := c.progress()
	defer progress.end()
	over := time.NewTimer(timeout)
	defer over.Stop()
	for {
		s, err := a.Status(ctx)
		if err != nil || s.OK {
			return s, err
		}
		progress.step(s.Verdict)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-over.C:
			return s, nil
		case <-time.After(look):
		}
	}
}
