package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
)

func (c *cli) reset() *cobra.Command {
	return &cobra.Command{
		Use:   "reset",
		Short: "Leave the host as it was before Weir",
		Long: `Leave the host as it was before Weir: programs, tables and queues go, what was
replaced comes back, and what weir vrf doctor --fix made goes. Only what is
Weir's is removed. It also finishes a change that was broken off. Without anything of Weir's there is nothing to do.

What weir vrf service wrote stays: a warning names each unit whose VRF is gone.`,
		Example: `  sudo weir status
  sudo weir reset`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			held, err := a.Held()
			if err != nil {
				return fmt.Errorf("reset: %w", err)
			}
			progress := c.progress()
			a.Progress = progress.step
			// Half a reset is worse than one that a signal has to wait for.
			ctx := context.WithoutCancel(cmd.Context())
			err = patiently(ctx, amongFew, func() error { return a.Reset(ctx) })
			progress.end()
			switch {
			case errors.Is(err, agent.ErrNotProved):
				return coded{error: fmt.Errorf("reset: %w", err), code: exitBroken}
			case err != nil:
				return fmt.Errorf("reset: %w", err)
			}
			var b strings.Builder
			printDifferences(&b, c.paint(c.stdout), held)
			files, err := c.undoVRFFiles(&b)
			if err != nil {
				return fmt.Errorf("reset: %w", err)
			}
			if len(held)+files == 0 {
				b.WriteString("Nothing of Weir's was here.\n")
			} else {
				fmt.Fprintf(&b, "Reset: %d removed. The host is as it was before Weir.\n", len(held)+files)
			}
			if _, err = io.WriteString(c.stdout, b.String()); err != nil {
				return err
			}
			return c.warnOfOrphans()
		},
	}
}

// warnOfOrphans names the units whose VRF is gone, and what takes their drop-ins away: they are of
// units, and reset restarts nobody.
func (c *cli) warnOfOrphans() error {
	orphans, err := c.orphans()
	for _, f := range orphans {
		c.warn("%s: it does not start any more; %s", f.Text, f.Mend)
	}
	return err
}
