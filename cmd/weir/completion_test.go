package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A shell never waits long for words, and never hears of errors.
func TestInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := []string{"eth0"}
		c := &cli{env: system()}
		for _, tt := range []struct {
			name string
			ask  func(context.Context) ([]string, error)
			want []string
		}{
			{"quick", func(context.Context) ([]string, error) { return words, nil }, words},
			{"wrong", func(context.Context) ([]string, error) { return words, errors.New("down") }, nil},
			{"slow", func(ctx context.Context) ([]string, error) { time.Sleep(time.Minute); return words, nil }, nil},
		} {
			start := time.Now()
			got := c.inTime(tt.ask)
			if diff := cmp.Diff(tt.want, got); diff != "" || time.Since(start) > 150*time.Millisecond {
				t.Errorf("%s after %s: %s", tt.name, time.Since(start), diff)
			}
		}
		time.Sleep(time.Minute)
	})
}
