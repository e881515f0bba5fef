package screen

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// atTerminal is a player that sits at one.
type atTerminal struct {
	*testutil.Terminal
	before unix.Termios // its modes
	cmd    *exec.Cmd
	wait   func() int
}

// start has a player at a terminal, under a shell where it can be stopped.
func start(t *testing.T, part string, shell ...string) atTerminal {
	t.Helper()
	term := testutil.NewTerminal(t, 80, 24)
	before := term.Modes(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words := append(shell, self)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), play+"="+cmp.Or(part, "plays"))
	return atTerminal{term, before, cmd, term.Start(t, cmd)}
}

// Whatever ends it, the terminal is as it was, and what is told after that is told there.
func TestTheTerminalIsRestored(t *testing.T) {
	for _, tt := range []struct {
		name, part string
		end        func(*testing.T, *testutil.Terminal, *exec.Cmd)
		code       int
		told       string
	}{
		{"q", "", func(t *testing.T, term *testutil.Terminal, _ *exec.Cmd) { term.Type(t, "q") }, 0, "ended well"},
		{"all readings", "three", nil, 0, "ended well"},
		{"Ctrl-C", "", func(t *testing.T, term *testutil.Terminal, _ *exec.Cmd) { term.Type(t, "\x03") }, 3, "ended: interrupt signal received"},
		{"SIGTERM", "", func(_ *testing.T, _ *testutil.Terminal, cmd *exec.Cmd) { _ = cmd.Process.Signal(unix.SIGTERM) }, 3, "ended: terminated signal received"},
		{"a reading fails", "fails", nil, 3, "ended: no more readings"},
		{"a reading panics", "panics", nil, 2, "panic: the reader fell"},
		{"drawing panics", "draws", nil, 2, "panic: the painter fell"},
		{"Ctrl-\\", "", func(t *testing.T, term *testutil.Terminal, _ *exec.Cmd) { term.Type(t, "\x1c") }, 128 + 3, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			term := start(t, tt.part)
			term.Until(t, enter)
			term.Until(t, "reading ")
			if tt.end != nil {
				tt.end(t, term.Terminal, term.cmd)
			}
			term.Until(t, leave)
			after := term.Until(t, tt.told)
			if strings.Contains(after, enter) || strings.Contains(after, "reading ") {
				t.Errorf("it went on: %q", after)
			}
			if code := term.wait(); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if after := term.Modes(t); after != term.before {
				t.Errorf("the modes are %+v, they were %+v", after, term.before)
			}
		})
	}
}

// Each size is drawn whole and not beyond: no line is one too many.
func TestSizes(t *testing.T) {
	term := start(t, "")
	for _, size := range []struct {
		columns, rows int
		name          string
	}{{80, 24, "at 80x24"}, {40, 10, "at 40x10"}, {300, 100, "at 300x100"}, {1, 1, "at 1x1"}, {0, 0, "at 80x24"}} {
		term.Resize(t, size.columns, size.rows)
		term.Until(t, size.name)
		frame := term.Until(t, restBelow)
		if lines := strings.Count(frame, "\r\n") + 1; lines != max(size.rows, 1) && size.rows != 0 {
			t.Errorf("%s has %d lines: %q", size.name, lines, frame)
		}
		if strings.Count(frame, "\n") != strings.Count(frame, "\r\n") {
			t.Errorf("a line does not begin at the left: %q", frame)
		}
	}
	term.Type(t, "q")
	term.wait()
}

func TestKeys(t *testing.T) {
	term := start(t, "")
	term.Until(t, "reading ")
	for _, key := range []string{"a", "\x1b[A", "\x1bOB", "\x1b[C\x1b[D", "\x1b", "\x1b[15~", "\r", "Z"} {
		term.Type(t, key)
	}
	term.Until(t, " aupdownrightleftenterZ|")
	term.Type(t, "q")
	if code := term.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// Stopped, the terminal is the shell's again; continued, the screen is back.
func TestSuspended(t *testing.T) {
	term := start(t, "", "sh", "-c", `
		set -m; "$0"; echo stopped $?; read line; fg >/dev/null; echo stopped $?; read line; fg >/dev/null; echo code $?`)
	group := func() int { // the one in the foreground
		id, err := unix.IoctlGetInt(int(term.Far.Fd()), unix.TIOCGPGRP)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, stop := range []func(){
		func() { term.Type(t, "\x1a") },
		func() { _ = unix.Kill(group(), unix.SIGTSTP) },
	} {
		term.Until(t, "reading ")
		stop()
		term.Until(t, leave)
		term.Until(t, "stopped 148")
		if modes := term.Modes(t); modes.Lflag != term.before.Lflag {
			t.Errorf("the modes are %+v, they were %+v", modes, term.before)
		}
		term.Type(t, "\n")
		term.Until(t, enter)
	}
	term.Until(t, "reading ")
	term.Type(t, "q")
	term.Until(t, "code 0")
	term.wait()
	if after := term.Modes(t); after != term.before {
		t.Errorf("the modes are %+v, they were %+v", after, term.before)
	}
}

// In an orphan's group nobody could continue it: it goes on.
func TestSuspendedAlone(t *testing.T) {
	term := start(t, "")
	term.Until(t, "reading ")
	term.Type(t, "\x1a")
	term.Until(t, leave)
	term.Until(t, enter)
	term.Until(t, "reading ")
	term.Type(t, "q")
	if code := term.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A terminal that is gone ends the screen.
func TestGone(t *testing.T) {
	term := testutil.NewTerminal(t, 80, 24)
	near, err := os.OpenFile(term.Path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	s := Screen[int]{
		Interval: time.Millisecond, Read: func(context.Context) (int, error) { return 0, nil },
		Render: func(int, int, int) string { term.Far.Close(); return "a line" },
	}
	if err := s.Run(t.Context(), near, near); !errors.Is(err, unix.EIO) {
		t.Errorf("it ended by %v", err)
	}
}

// Where there is no terminal nothing is changed.
func TestNoTerminal(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	s := Screen[int]{Read: func(context.Context) (int, error) { return 0, errSpent }}
	if err := s.Run(t.Context(), nil, null); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("it ended by %v", err)
	}
}

func TestEach(t *testing.T) {
	n := 0
	s := Screen[int]{Interval: time.Millisecond, Times: 3, Read: func(context.Context) (int, error) { n++; return n, nil }}
	var shown []int
	show := func(i int) error { shown = append(shown, i); return nil }
	if err := s.Each(t.Context(), show); err != nil || len(shown) != 3 || shown[2] != 3 {
		t.Errorf("%v, %v", shown, err)
	}
	s.Times = 0
	ctx, cancel := context.WithCancelCause(t.Context())
	err := s.Each(ctx, func(i int) error {
		if i == 5 {
			cancel(errSpent)
		}
		return nil
	})
	if !errors.Is(err, errSpent) {
		t.Errorf("it ended by %v", err)
	}
}
