package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/screen"
)

// samplesPerSecond is how often calls are sampled: a prime, so that nothing that a clock starts
// is always met at the same moment, and few, since each is an interrupt and a stack to follow.
const samplesPerSecond = 97

// costViews are the tables of weir cost.
var costViews = []string{"cpu", "victim", "owner", "matrix"}

func (c *cli) cost() *cobra.Command {
	live := new(liveFlags)
	by := costViews[1]
	cmd := &cobra.Command{
		Use:   "cost [--by cpu|victim|owner|matrix] [--interval TIME] [-n N] [--once] [--json]",
		Short: "Show what networking takes in CPU time: from whom, and for whose packets",
		Long: `Show what networking takes in CPU time, from whom, and for whose packets. The kernel
handles packets in interrupts, in the time of whatever task it happens upon, and top shows that
as the task's own. Here it is apart: irq is hard interrupts, net_rx, net_tx and other are softirqs;
send and receive is what a task does in sendmsg and recvmsg itself. A victim is who ran meanwhile,
an owner whose packets they were: a workload of the policy in force, or else a cgroup. What was
forwarded is shown by the device it left by, what was dropped as such, and what reached no socket and no device
as unattributed. The times of interrupts are measured, some of them for all; calls are
sampled. What the measurement itself takes is told, too. Nothing is changed.`,
		Example: `  sudo weir cost
  sudo weir cost --by matrix --once --interval 10s
  sudo weir cost --json -n 60 | jq '.owners[] | {name, all}'`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := live.check(cmd); err != nil {
				return err
			}
			if !slices.Contains(costViews, by) {
				return &usageError{fmt.Sprintf("--by %q is not known", by), didYouMean(by, costViews, "one of "+strings.Join(costViews, ", "))}
			}
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			return c.watchCost(cmd.Context(), a, live, by)
		},
	}
	live.add(cmd)
	cmd.AddCommand(c.costProbe(), c.costCompare())
	cmd.Flags().StringVar(&by, "by", by, "a table by `WHOM`: cpu, victim, owner or matrix")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(costViews, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *cli) watchCost(ctx context.Context, a *agent.Agent, live *liveFlags, by string) (err error) {
	m, err := a.MeasureCost(samplesPerSecond, false)
	if err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return watch(ctx, c, live, screen.Screen[*cost.Report]{
		Read: func(ctx context.Context) (*cost.Report, error) { return m.Next(ctx, live.interval) },
		Render: func(r *cost.Report, width, height int) string {
			v := costView{painter: c.paint(c.stdout), width: width, height: height}
			return v.render(r, by)
		},
		Key: func(key string) {
			at := slices.Index(costViews, by)
			switch key {
			case "right":
				by = costViews[(at+1)%len(costViews)]
			case "left":
				by = costViews[(at+len(costViews)-1)%len(costViews)]
			}
		},
	})
}
