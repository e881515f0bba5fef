package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// Watcher is the argument with which Detach starts the process that gives new
// interfaces their net_prio entries: it calls WatchLinksWhileUsed.
const Watcher = "watch-links"

// WatchLinksWhileUsed gives interfaces that appear later their net_prio entries,
// until nothing is carried by net_prio any more or ctx ends. The kernel tells of
// new links, but nobody of groups that were removed.
func (a *Agent) WatchLinksWhileUsed(ctx context.Context) error {
	const look = time.Second
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.tree().Watch(ctx, nil) }()
	tick := time.NewTicker(look)
	defer tick.Stop()
	file, unused := state.Look{Scope: a.Scope}, false
	for {
		select {
		case err := <-done:
			if unused && errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case <-tick.C:
			if r, err := file.Record(); err == nil && !usesNetPrio(r.Groups, r.Sets) {
				unused = true
				cancel()
			}
		}
	}
}

// watchLinks starts the watcher, unless one runs.
func (c *change) watchLinks() error {
	if w := c.record.Watcher; c.Detach == nil || w != nil && lives(*w) {
		return nil
	}
	pid, err := c.Detach(Watcher)
	if err != nil {
		return fmt.Errorf("start the watcher of interfaces: %w", err)
	}
	p, err := workload.ReadProcess(uint32(pid))
	if err != nil {
		return fmt.Errorf("start the watcher of interfaces: %w", err)
	}
	c.record.Watcher = &state.Process{PID: p.PID, Start: p.Start}
	return c.save()
}
