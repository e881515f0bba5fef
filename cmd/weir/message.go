package main

import (
	"errors"
	"fmt"

	"github.com/weir-net/weir/internal/policy"
)

// printError is where errors are printed, once.
func (c *cli) printError(err error) {
	paint := c.paint(c.stderr)
	var (
		own   coded
		wrong *policyError
		loose policy.Errors
	)
	switch {
	case errors.As(err, &own) && own.quiet:
	case errors.As(err, &wrong):
		fmt.Fprint(c.stderr, wrong.errors.Render(wrong.file, wrong.source, paint.on))
	case errors.As(err, &loose): // of a policy whose text is not at hand
		fmt.Fprint(c.stderr, loose.Render("the applied policy", nil, paint.on))
	default:
		fmt.Fprintf(c.stderr, "%s %v\n", paint.red("error:"), err)
		for _, help := range hints(err) {
			fmt.Fprintf(c.stderr, "  %s %s\n", paint.cyan("help:"), help)
		}
	}
}

// warn tells what does not keep a command from doing its work.
func (c *cli) warn(format string, args ...any) {
	fmt.Fprintf(c.stderr, "%s %s\n", c.paint(c.stderr).yellow("warning:"), fmt.Sprintf(format, args...))
}
