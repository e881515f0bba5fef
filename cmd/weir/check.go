package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/policy"
)

// A checkReport is the JSON of weir check.
type checkReport struct {
	SchemaVersion string       `json:"schema_version"`
	File          string       `json:"file"`
	OK            bool         `json:"ok"`
	Links         int          `json:"links"`
	Workloads     int          `json:"workloads"`
	Errors        []checkError `json:"errors"` // in order of position
	Skipped       []string     `json:"skipped,omitempty"`
}

// A checkError is one error of a policy file. Lines and columns count from 1;
// the end is the first character behind it. An error about the file has line 0.
type checkError struct {
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
	Message   string `json:"message"`
	Help      string `json:"help,omitempty"`
}

// notLookedAt is what only the host could tell.
const notLookedAt = "whether the host has its links, users and programs (weir plan looks)"

func (c *cli) check() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [--json] FILE",
		Short: "Check a policy file and show all of its errors",
		Long: `Check a policy file and show all of its errors at once, each with its line.
It needs no privileges and looks at nothing but the file, so it knows nothing of
the interfaces, users and programs of a host. FILE may be - for standard input.`,
		Example: `  weir check policy.yaml
  weir check - < policy.yaml
  weir check --json policy.yaml | jq '.errors[]'`,
		Args:              exactly("FILE"),
		ValidArgsFunction: policyFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, _, err := c.policy(cmd.Context(), args[0])
			if asJSON {
				return c.printCheck(args[0], p, err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.stdout, "%s: ok, %s and %s\nskipped: %s\n",
				p.File, count(len(p.Links), "link"), count(len(p.Workloads), "workload"), notLookedAt)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *cli) printCheck(file string, p *policy.Policy, err error) error {
	r := checkReport{SchemaVersion: schemaVersion, File: file, Errors: []checkError{}}
	var wrong *policyError
	switch {
	case errors.As(err, &wrong):
		r.File = wrong.file
		for _, d := range wrong.errors {
			r.Errors = append(r.Errors, checkError{d.Line, d.Column, d.EndLine, d.EndColumn, d.Message, d.Help})
		}
	case err != nil:
		return err
	default:
		r.File, r.OK, r.Links, r.Workloads = p.File, true, len(p.Links), len(p.Workloads)
		r.Skipped = []string{notLookedAt}
	}
	if err := c.printJSON(r); err != nil {
		return err
	}
	if !r.OK {
		return told(exitPolicy)
	}
	return nil
}

// policy reads a policy file and returns its text beside what it means; - is
// standard input.
func (c *cli) policy(ctx context.Context, file string) (*policy.Policy, []byte, error) {
	source, err := c.read(ctx, file)
	if err != nil {
		return nil, nil, fmt.Errorf("read policy: %w", err)
	}
	if file == "-" {
		file = "standard input"
	}
	p, err := c.parse(file, source)
	return p, source, inPolicy(file, source, err)
}

// parse reads a policy; one that is applied already was read before.
func (c *cli) parse(file string, source []byte) (*policy.Policy, error) {
	a, err := c.agent()
	if err != nil {
		return policy.Parse(file, source)
	}
	return a.Parse(file, source)
}

// inPolicy gives errors of a policy the text that they point into.
func inPolicy(file string, source []byte, err error) error {
	var wrong policy.Errors
	var known *policyError
	if errors.As(err, &wrong) && !errors.As(err, &known) {
		return &policyError{file, source, wrong}
	}
	return err
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

// count renders a number of things: 1 link, 2 links.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
