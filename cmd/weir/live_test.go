package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/screen"
	"github.com/weir-net/weir/internal/testutil"
)

// playVar makes of the test's program one with a live view of numbers.
const playVar = "WEIR_TEST_LIVE"

// live is a command with such a view.
func (c *cli) live() *cobra.Command {
	var f liveFlags
	n := 0
	cmd := &cobra.Command{Use: "live", SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, _ []string) error {
		if err := f.check(cmd); err != nil {
			return err
		}
		return watch(cmd.Context(), c, &f, screen.Screen[int]{
			Read:   func(context.Context) (int, error) { n++; return n, nil },
			Render: func(reading, width, height int) string { return fmt.Sprintf("%d at %dx%d\n", reading, width, height) },
		})
	}}
	f.add(cmd)
	cmd.SetFlagErrorFunc(flagError)
	return cmd
}

func TestLiveIntoAPipe(t *testing.T) {
	for _, tt := range []struct {
		args     string
		terminal bool
		want     string
	}{
		{"", false, "1 at 80x0\n"},
		{"--once", true, "1 at 80x0\n"},
		{"-n 2 --interval 100ms", false, "1 at 80x0\n\n2 at 80x0\n"},
		{"-n 2 --interval 100ms --json", false, "1\n2\n"},
		{"--json --once", true, "1\n"},
		{"-n 2 --interval 100ms", true, "1 at 80x0\n\n2 at 80x0\n"}, // a terminal that is no file has no screen
	} {
		var out strings.Builder
		e := system()
		e.stdout, e.isTerminal, e.columns = &out, func(io.Writer) bool { return tt.terminal }, func(io.Writer) int { return 80 }
		cmd := (&cli{env: e}).live()
		cmd.SetArgs(strings.Fields(tt.args))
		if err := cmd.ExecuteContext(t.Context()); err != nil || out.String() != tt.want {
			t.Errorf("%s: %q, want %q; %v", tt.args, &out, tt.want, err)
		}
	}
	for args, want := range map[string]string{
		"--once -n 3": "exclude each other", "-n 0": "not one at least", "-n x": "not a number", "--interval 1ms": "not from 100ms to 1h", "--interval 2": "not a time",
	} {
		cmd := (&cli{env: system()}).live()
		cmd.SetArgs(strings.Fields(args))
		err := cmd.ExecuteContext(t.Context())
		var usage *usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// On a terminal it has the screen, and says by its exit code what ended it.
func TestLiveOnATerminal(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, env, args, end string
		code                 int
	}{
		{"q", "", "--interval 100ms", "q", 0},
		{"Ctrl-C", "", "", "\x03", 130},
		{"so many", "", "-n 2 --interval 100ms", "", 0},
		{"static", "ACCESSIBLE=1", "--interval 100ms", "\x03", 130},
		{"static", "TERM=dumb", "--interval 100ms", "\x03", 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			term := testutil.NewTerminal(t, 60, 20)
			cmd := exec.Command(self, strings.Fields(tt.args)...)
			cmd.Env = append(os.Environ(), playVar+"=1", "TERM=xterm", tt.env)
			wait := term.Start(t, cmd)
			if tt.name == "static" {
				term.Until(t, "1 at 60x0\r\n\r\n2 at 60x0\r\n")
			} else {
				term.Until(t, "1 at 60x20")
			}
			term.Type(t, tt.end)
			if code := wait(); code != tt.code {
				t.Errorf("exit code %d, want %d: %q", code, tt.code, term.Written())
			}
			if screen := strings.Contains(term.Written(), "\x1b[?1049h"); screen != (tt.name != "static") {
				t.Errorf("a screen of its own: %v\n%q", screen, term.Written())
			}
		})
	}
}

// liveMain is weir with the command live alone.
func liveMain() int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	c := &cli{env: system()}
	cmd := c.live()
	cmd.SetArgs(c.args)
	return c.end(ctx, cmd.ExecuteContext(ctx))
}
