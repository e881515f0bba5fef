package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/screen"
)

// liveFlags say how long a live view goes on, and where it is shown.
type liveFlags struct {
	interval time.Duration
	times    int
	once     bool
	asJSON   bool
}

// usualInterval is from one reading of a live view to the next.
const usualInterval = 2 * time.Second

func (f *liveFlags) add(cmd *cobra.Command) {
	f.interval = usualInterval
	cmd.Flags().BoolVar(&f.once, "once", false, "print it once, and end")
	cmd.Flags().IntVarP(&f.times, "times", "n", 0, "end after `N` of them")
	cmd.Flags().Var(&waitFlag{&f.interval, 100 * time.Millisecond, time.Hour, "2s is the default"}, "interval", "a `TIME` from one to the next")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON, a line each")
	_ = cmd.RegisterFlagCompletionFunc("times", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("interval", cobra.NoFileCompletions)
}

// check returns a *usageError for flags that contradict each other.
func (f *liveFlags) check(cmd *cobra.Command) error {
	switch given := cmd.Flags().Changed("times"); {
	case given && f.once:
		return &usageError{"--once and -n exclude each other", "--once is -n 1"}
	case given && f.times < 1:
		return &usageError{fmt.Sprintf("-n %d: not one at least", f.times), "without -n it goes on until q or Ctrl-C"}
	}
	return nil
}

// onScreen reports whether a live view has a terminal for itself. Everywhere else it is text
// that stays: in a pipe, with --once, and where ACCESSIBLE=1 or the terminal says so.
func (c *cli) onScreen(f *liveFlags) bool {
	_, file := c.stdout.(*os.File)
	return file && c.isTerminal(c.stdout) && !f.once && !f.asJSON && c.getenv("ACCESSIBLE") != "1" && c.getenv("TERM") != "dumb"
}

// watch shows a live view. What does not go to a screen is rendered for a height of 0: all
// of it; into a pipe once, unless -n says how often.
func watch[T any](ctx context.Context, c *cli, f *liveFlags, s screen.Screen[T]) error {
	s.Interval, s.Times = f.interval, f.times
	if c.onScreen(f) {
		in, _ := c.stdin.(*os.File)
		return s.Run(ctx, in, c.stdout.(*os.File))
	}
	if f.once || s.Times == 0 && !f.asJSON && !c.isTerminal(c.stdout) {
		s.Times = 1
	}
	lines := json.NewEncoder(c.stdout)
	lines.SetEscapeHTML(false)
	before := ""
	return s.Each(ctx, func(reading T) error {
		if f.asJSON {
			if err := lines.Encode(reading); err != nil {
				return fmt.Errorf("print JSON: %w", err)
			}
			return nil
		}
		_, err := io.WriteString(c.stdout, before+s.Render(reading, c.columns(c.stdout), 0))
		before = "\n"
		return err
	})
}
