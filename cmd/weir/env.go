package main

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// env is all that the program knows of the process it runs in.
type env struct {
	args       []string // without the program's name
	stdin      io.Reader
	stdout     io.Writer
	stderr     io.Writer
	isTerminal func(io.Writer) bool
	columns    func(io.Writer) int // width of a terminal
	getenv     func(string) string
	environ    func() []string // for the command of weir run
	now        func() time.Time
	scope      func() (state.Scope, error) // what this weir looks after
	terminals  string                      // directory of the terminals of those who are logged in
	systemLog  string                      // socket of the system log
	files      string                      // the directory below which /etc and /run are
	completeIn time.Duration               // how long a shell waits for completions
}

// system is the environment of this process.
func system() env {
	return env{
		args:       os.Args[1:],
		stdin:      os.Stdin,
		stdout:     os.Stdout,
		stderr:     os.Stderr,
		isTerminal: isTerminal,
		columns:    columns,
		getenv:     os.Getenv,
		environ:    os.Environ,
		now:        time.Now,
		scope:      wholeHost,
		terminals:  host.Terminals,
		systemLog:  host.SystemLog,
		files:      "/",
		completeIn: completionTime,
	}
}

// wholeHost is the scope of the host; without a v2 hierarchy it has no cgroup.
func wholeHost() (state.Scope, error) {
	h, err := workload.FindHierarchies()
	if err != nil {
		return state.Scope{}, err
	}
	return state.Host(h.V2), nil
}

// columns is the width of a terminal, or what fits on nearly all of them.
func columns(w io.Writer) int {
	const usual = 80
	f, ok := w.(*os.File)
	if !ok {
		return usual
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return usual
	}
	return width
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
