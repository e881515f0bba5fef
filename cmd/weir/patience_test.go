package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-net/weir/internal/state"
)

func TestPatiently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		free := time.Now().Add(300 * time.Millisecond)
		err := patiently(t.Context(), time.Second, func() error {
			if tries++; time.Now().Before(free) {
				return fmt.Errorf("set: %w", state.ErrBusy)
			}
			return nil
		})
		if err != nil || tries < 2 {
			t.Errorf("a lock that becomes free: %v after %d tries", err, tries)
		}
		start := time.Now()
		err = patiently(t.Context(), time.Second, func() error { return state.ErrBusy })
		if !errors.Is(err, state.ErrBusy) || time.Since(start) < time.Second {
			t.Errorf("a lock that stays: %v after %s", err, time.Since(start))
		}
		other := errors.New("other")
		start = time.Now()
		if err := patiently(t.Context(), time.Second, func() error { return other }); err != other || time.Since(start) > 0 {
			t.Errorf("another error: %v after %s", err, time.Since(start))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(interrupted{2})
		if err := patiently(ctx, time.Second, func() error { return state.ErrBusy }); err != (interrupted{2}) {
			t.Errorf("a signal: %v", err)
		}
	})
}
