package agent

import (
	"context"
	"errors"
	"time"
)

// WatchLinksWhileUsed is WatchLinks until nothing is carried by net_prio any
// more. The kernel tells of new links, but nobody of groups that were removed.
func (a *Agent) WatchLinksWhileUsed(ctx context.Context) error {
	const look = time.Second
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.WatchLinks(ctx) }()
	tick := time.NewTicker(look)
	defer tick.Stop()
	unused := false
	for {
		select {
		case err := <-done:
			if unused && errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case <-tick.C:
			r, err := a.Scope.Load()
			if err == nil && !usesNetPrio(r.Groups, r.Sets) {
				unused = true
				cancel()
			}
		}
	}
}
