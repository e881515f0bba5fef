package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/state"
)

// guard is the process that takes an unconfirmed change back. apply --confirm
// starts it, detached; nobody else does.
func (c *cli) guard() *cobra.Command {
	return &cobra.Command{
		Use:     agent.Guardian + " DEADLINE",
		Short:   "Take an unconfirmed change back at its deadline",
		Example: "  weir guard 2026-05-04T12:00:00Z     as weir apply --confirm starts it",
		Hidden:  true,
		Args:    exactly("DEADLINE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			deadline, err := time.Parse(time.RFC3339Nano, args[0])
			if err != nil {
				return &usageError{fmt.Sprintf("DEADLINE %q is no time", args[0]), "weir apply --confirm 90s FILE"}
			}
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
			acted, err := a.Guard(cmd.Context(), deadline)
			if cmd.Context().Err() != nil {
				acted, err = endEarly(a)
			}
			if !acted && err == nil {
				return nil
			}
			c.tellAbsent(a, err)
			return told(exitRolledBack)
		},
	}
}

// endEarly takes the change back when the guard itself is told to end: without
// it nobody would. The host is on its way down, or somebody means the change.
func endEarly(a *agent.Agent) (acted bool, err error) {
	for {
		err := a.Rollback(context.Background(), "its guard was ended")
		switch {
		case errors.Is(err, agent.ErrNothingPending):
			return false, nil
		case !errors.Is(err, state.ErrBusy):
			return true, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// tellAbsent tells those who are logged in, the system log and, through the
// record, weir status.
func (c *cli) tellAbsent(a *agent.Agent, err error) {
	text := "the change was rolled back"
	if r, loaded := a.Scope.Load(); loaded == nil && r.Rollback != nil {
		text += ": " + r.Rollback.Reason
	}
	if err != nil {
		text = "the change could not be rolled back: " + err.Error()
	}
	host.Wall(c.terminals, fmt.Sprintf("weir, %s: %s\nweir status tells what is in force.", c.now().Format(time.TimeOnly), text))
	_ = host.Log(c.systemLog, "weir", text) // a host without a log has the terminals and the record
}

// watchLinks is the process that gives new interfaces their net_prio entries.
func (c *cli) watchLinks() *cobra.Command {
	return &cobra.Command{
		Use:     agent.Watcher,
		Short:   "Give new interfaces their net_prio entries",
		Example: "  weir watch-links     as weir apply starts it",
		Hidden:  true,
		Args:    nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			signal.Ignore(syscall.SIGHUP)
			return a.WatchLinksWhileUsed(cmd.Context())
		},
	}
}
