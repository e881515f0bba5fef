package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/state"
)

type buffers struct{ stdout, stderr bytes.Buffer }

// do runs the program in this process, on terminals as named.
func do(ctx context.Context, stdin string, terminal func(*buffers) []io.Writer, vars map[string]string, args ...string) (int, *buffers) {
	var b buffers
	var terminals []io.Writer
	if terminal != nil {
		terminals = terminal(&b)
	}
	code := run(ctx, env{
		args: args, stdin: strings.NewReader(stdin), stdout: &b.stdout, stderr: &b.stderr,
		isTerminal: func(w io.Writer) bool {
			for _, t := range terminals {
				if t == w {
					return true
				}
			}
			return false
		},
		columns: func(io.Writer) int { return 80 },
		getenv:  func(name string) string { return vars[name] },
		environ: func() []string { return nil },
		now:     func() time.Time { return time.Unix(0, 0) },
		scope:   func() (state.Scope, error) { return state.Scope{}, errors.New("no scope here") },
	})
	return code, &b
}

func TestRunEndsWithTheSignal(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted{15})
	if code, b := do(ctx, "", nil, nil, "check", "/dev/stdin"); code != 143 || b.stderr.Len() > 0 {
		t.Errorf("exit code %d\n%s", code, &b.stderr)
	}
}

// Arguments come from env alone; none are none.
func TestRunTakesNoArgumentsOfTheProcess(t *testing.T) {
	code, b := do(t.Context(), "", nil, nil)
	if code != exitDone || !strings.HasPrefix(b.stdout.String(), "Examples:") {
		t.Errorf("exit code %d\n%s%s", code, &b.stdout, &b.stderr)
	}
}

func TestColor(t *testing.T) {
	none := func(*buffers) []io.Writer { return nil }
	both := func(b *buffers) []io.Writer { return []io.Writer{&b.stdout, &b.stderr} }
	errOnly := func(b *buffers) []io.Writer { return []io.Writer{&b.stderr} }
	outOnly := func(b *buffers) []io.Writer { return []io.Writer{&b.stdout} }
	noColor := map[string]string{"NO_COLOR": "1"}
	for _, tt := range []struct {
		name     string
		terminal func(*buffers) []io.Writer
		vars     map[string]string
		flags    []string
		want     bool // colour on standard error
	}{
		{"pipe", none, nil, nil, false},
		{"terminal", both, nil, nil, true},
		{"standard error alone", errOnly, nil, nil, true},
		{"standard output alone", outOnly, nil, nil, false},
		{"NO_COLOR", both, noColor, nil, false},
		{"empty NO_COLOR", both, map[string]string{"NO_COLOR": ""}, nil, true},
		{"dumb terminal", both, map[string]string{"TERM": "dumb"}, nil, false},
		{"always over NO_COLOR", none, noColor, []string{"--color=always"}, true},
		{"never over a terminal", both, nil, []string{"--color=never"}, false},
		{"auto", both, nil, []string{"--color=auto"}, true},
		{"separate value", none, nil, []string{"--color", "always"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for what, args := range map[string][]string{
				"wrong policy": {"check", "-"}, "wrong flag": {"check", "--nope"},
			} {
				_, b := do(t.Context(), "version: 2", tt.terminal, tt.vars, append(tt.flags, args...)...)
				if got := strings.Contains(b.stderr.String(), "\x1b["); got != tt.want {
					t.Errorf("%s: colour is %v:\n%q", what, got, b.stderr.String())
				}
			}
		})
	}
}

func TestIsTerminal(t *testing.T) {
	if isTerminal(&bytes.Buffer{}) {
		t.Error("a buffer is no terminal")
	}
}
