package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
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
			p, err := c.policy(cmd.Context(), args[0])
			if asJSON {
				return c.printCheck(p, err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.stdout, "%s: ok, %s and %s\nskipped: %s\n",
				p.name, count(len(p.Links), "link"), count(len(p.Workloads), "workload"), notLookedAt)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *cli) printCheck(p policyFile, err error) error {
	r := checkReport{SchemaVersion: schemaVersion, File: p.name, Errors: []checkError{}}
	var wrong *policyError
	switch {
	case errors.As(err, &wrong):
		for _, d := range wrong.errors {
			r.Errors = append(r.Errors, checkError{d.Line, d.Column, d.EndLine, d.EndColumn, d.Message, d.Help})
		}
	case err != nil:
		return err
	default:
		r.OK, r.Links, r.Workloads = true, len(p.Links), len(p.Workloads)
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
