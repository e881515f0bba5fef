package main

import (
	"context"
	"errors"
	"time"

	"github.com/weir-net/weir/internal/state"
)

// How long a command waits for another weir that holds the lock. Starting a
// command holds it for a moment, and must not make an apply fail; two applies at
// once are a mistake that somebody should see. Commands may be started by many at
// the same time.
const (
	amongFew  = time.Second
	amongMany = 5 * time.Second
)

// patiently repeats what another weir keeps from being done.
func patiently(ctx context.Context, patience time.Duration, fn func() error) error {
	const look = 20 * time.Millisecond
	deadline := time.Now().Add(patience)
	for {
		err := fn()
		if !errors.Is(err, state.ErrBusy) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(look):
		}
	}
}
