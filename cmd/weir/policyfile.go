package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/policy"
)

// standardInput is the name of a policy that has none.
const standardInput = "standard input"

// A policyError is a wrong policy with the text that its errors point into.
type policyError struct {
	file   string
	source []byte
	errors policy.Errors
}

func (e *policyError) Error() string { return e.file + ": " + e.errors.Error() }

func (e *policyError) Unwrap() error { return e.errors }

// A policyFile is a policy with its text and the name that messages call it by.
// The File of the policy, which is what the record keeps, is right in every
// directory.
type policyFile struct {
	*policy.Policy
	name string
	text []byte
}

// policy reads the policy in a file; - is standard input.
func (c *cli) policy(ctx context.Context, file string) (policyFile, error) {
	text, err := c.read(ctx, file)
	if err != nil {
		return policyFile{}, fmt.Errorf("read policy: %w", err)
	}
	if asSavedPlan(text) != nil {
		return policyFile{}, &hinted{fmt.Errorf("read policy: %s is a saved plan", nameOf(file)), []string{
			"weir apply " + shellWord(file) + " puts it into force",
		}}
	}
	return c.parse(nameOf(file), text)
}

// parse reads a policy; one that is applied already was read before.
func (c *cli) parse(name string, text []byte) (f policyFile, err error) {
	f = policyFile{name: name, text: text}
	if a, nowhere := c.agent(); nowhere != nil {
		f.Policy, err = policy.Parse(name, text)
	} else {
		f.Policy, err = a.Parse(name, text)
	}
	if err != nil {
		return f, f.located(err)
	}
	if path, err := filepath.Abs(name); err == nil && name != standardInput {
		f.File = path
	}
	return f, nil
}

// located gives errors of the policy the text that they point into.
func (f policyFile) located(err error) error {
	var wrong policy.Errors
	if errors.As(err, &wrong) {
		return &policyError{f.name, f.text, wrong}
	}
	return err
}

// nameOf is what messages call a file of the command line.
func nameOf(file string) string {
	if file == "-" {
		return standardInput
	}
	return file
}

// fileWord is the file of a policy as a shell reads it: FILE where there is none
// to name.
func fileWord(file string) string {
	if file == standardInput {
		return "FILE"
	}
	return shellWord(file)
}

// needsCgroup2 refuses a policy that asks for more than net_prio where nothing
// tells sockets by their cgroup.
func needsCgroup2(a *agent.Agent, p *policy.Policy) error {
	if a.Scope.Cgroup != "" {
		return nil
	}
	for _, w := range p.Workloads {
		if w.Via == policy.ViaBPF {
			return errNoCgroup2
		}
	}
	if len(p.Links) > 0 {
		return errNoCgroup2
	}
	return nil
}

// read reads a file, or standard input for -. A pipe that stays silent does
// not keep a signal waiting.
func (c *cli) read(ctx context.Context, file string) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		if file == "-" {
			r.text, r.err = io.ReadAll(c.stdin)
		} else {
			r.text, r.err = os.ReadFile(file)
		}
		done <- r
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
