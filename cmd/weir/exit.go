package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-net/weir/internal/policy"
)

// The exit codes. Two more are those of shells: 128 and the number of the
// signal that ended the program.
const (
	exitDone       = 0
	exitFailed     = 1
	exitDiffers    = 2
	exitRolledBack = 3
	exitPrivilege  = 4
	exitBroken     = 5
	exitUsage      = 64
	exitPolicy     = 65
)

// exitCodes is the help topic of the same name.
const exitCodes = `Exit codes of weir:

    0  done
    1  failed: nothing was changed, everything is as it was before, or the
       message says what is not; doctor: something that promises need is missing
    2  plan has differences (only with --detailed-exitcode)
    3  applied, then rolled back
    4  a privilege is missing: the message says which, and two ways to get it
    5  a promise is broken, a change was broken off, or a lab did not show what
       it should
   64  wrong use of the command line
   65  wrong policy
  130  interrupted (SIGINT), as in shells: 128 and the number of the signal
  143  terminated (SIGTERM)

weir run ends with the exit code of its command; with 127 where that is not
found, and with 126 where it can not be executed.
`

// A usageError is a command line that cannot be meant.
type usageError struct {
	message string
	help    string // what could be meant, or where it is explained
}

func (e *usageError) Error() string { return e.message }

// A coded error ends the program with a code of its own. A quiet one was told
// already.
type coded struct {
	error
	code  int
	quiet bool
}

func (c coded) Unwrap() error { return c.error }

// A leftBehind error is told even where a signal ended the program: something is
// not as it was.
type leftBehind struct{ error }

func (l leftBehind) Unwrap() error { return l.error }

// told ends the program with a code after everything was printed.
func told(code int) error {
	return coded{error: fmt.Errorf("exit code %d", code), code: code, quiet: true}
}

// end prints the error, if there is one, and returns the exit code.
func (c *cli) end(ctx context.Context, err error) int {
	if err == nil {
		return exitDone
	}
	var signal interrupted
	if errors.As(err, &signal) || errors.As(context.Cause(ctx), &signal) {
		var left leftBehind
		if errors.As(err, &left) {
			c.printError(left)
		}
		return 128 + int(signal.signal)
	}
	c.printError(err)
	return code(err)
}

func code(err error) int {
	var (
		own    coded
		usage  *usageError
		policy policy.Errors
	)
	switch {
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &policy):
		return exitPolicy
	}
	return exitFailed
}
