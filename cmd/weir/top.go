package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/screen"
)

func (c *cli) top() *cobra.Command {
	var f liveFlags
	var of string
	v := topView{sort: topSorts[0]}
	cmd := &cobra.Command{
		Use:   "top [--workload NAME] [--sort COLUMN] [--links] [--once | -n N] [--interval TIME] [--json]",
		Short: "Watch what each workload sends, and how much of its limits it uses",
		Long: `Watch what each workload sends, and how much of its limits it uses. On a terminal
it goes on until q or Ctrl-C; s sorts by another column, l shows each link apart.
Into a pipe it is one snapshot, and with --json a line each time. Speeds are means
over the interval, as on the wire, without what limits drop. Nobody counts what
sockets receive that have no limit of it. Rows add up to what the devices count:
(unclaimed) is of no workload, (unclassified) could not be told, (unattributed)
went past Weir's program, and (not counted) is what the rows have and the device
has not: it waits, its queue dropped it, or its device counts a packet that is cut
later as one. limit is the part of the limit that is used most, bound that of
tcp-memory, and holds what TCP sockets hold. The verdict is as old as 10 s.
Nothing is changed.`,
		Example: `  sudo weir top
  sudo weir top --sort limit --interval 5s
  sudo weir top --json -n 10 | jq '.rows[] | select(.limit.percent > 90) | .workload'`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if cmd.Flags().Changed("workload") && of == "" {
				return &usageError{"--workload needs a value", "weir top --workload NAME"}
			}
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			if err := known(a, of); err != nil {
				return err
			}
			apart, watched := f.interval, a.Watch()
			if c.onScreen(&f) {
				apart = min(apart, firstLook)
				v.keys = true
			}
			v.painter = c.paint(c.stdout)
			err = watch(cmd.Context(), c, &f, screen.Screen[*agent.Top]{
				Read: func(ctx context.Context) (*agent.Top, error) {
					t, err := watched.Next(ctx, apart)
					if err == nil && of != "" {
						t.Rows = slices.DeleteFunc(t.Rows, func(r plan.Row) bool { return r.Workload != of })
					}
					return t, err
				},
				Render: v.render,
				Key:    v.key,
			})
			if err != nil {
				return fmt.Errorf("top: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&of, "workload", "", "only the workload `NAME`")
	cmd.Flags().Var(oneOf(&v.sort, topSorts...), "sort", "who comes first: `COLUMN` is sent, received, limit, dropped, holds, sockets or name")
	cmd.Flags().BoolVar(&v.links, "links", false, "show what is sent on each link apart")
	f.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("workload", c.completeWorkload)
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(topSorts, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// firstLook is how long somebody at a screen waits for the first speeds at most.
const firstLook = 500 * time.Millisecond

// known returns a *usageError for a workload that is not in force; "" is any.
func known(a *agent.Agent, workload string) error {
	if workload == "" {
		return nil
	}
	names, err := a.Workloads()
	if err != nil || slices.Contains(names, workload) {
		return err
	}
	return unknownWorkload(&agent.UnknownWorkload{Name: workload, Known: names})
}

// unknownWorkload is the refusal of a name that nobody has.
func unknownWorkload(err error) error {
	var unknown *agent.UnknownWorkload
	if !errors.As(err, &unknown) {
		return nil
	}
	return &usageError{unknown.Error(), didYouMean(unknown.Name, unknown.Known, "weir status names those that are")}
}
