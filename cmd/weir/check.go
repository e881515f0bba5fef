package main

import (
	"errors"
	"fmt"
	"strings"

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
	VRFs          int          `json:"vrfs"`
	Errors        []checkError `json:"errors"`             // in order of position
	Warnings      []checkError `json:"warnings,omitempty"` // what this kernel would not let apply do
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
It needs no privileges and knows nothing of the interfaces, users and programs of
a host. Of the kernel it asks one thing, and only for a policy that has vrfs, since
these can not even be tried where the kernel has no VRF: that is a warning, because
the file may be for another host. FILE may be - for standard input.`,
		Example: `  weir check policy.yaml
  weir check - < policy.yaml
  weir check --json policy.yaml | jq '.errors[]'`,
		Args:              exactly("FILE"),
		ValidArgsFunction: policyFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := c.policy(cmd.Context(), args[0])
			var wrong *policyError
			if err != nil && !(asJSON && errors.As(err, &wrong)) {
				return err
			}
			return c.printCheck(checked(p, wrong), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// checked is the report of a policy that is right, or what is wrong with it.
func checked(p policyFile, wrong *policyError) checkReport {
	r := checkReport{SchemaVersion: schemaVersion, File: p.name, Errors: []checkError{}}
	if wrong != nil {
		r.Errors = checkErrors(wrong.errors)
		return r
	}
	r.OK, r.Links, r.Workloads, r.VRFs = true, len(p.Links), len(p.Workloads), len(p.VRFs)
	r.Skipped = []string{notLookedAt}
	lacks, unknown := agent.WithoutVRF(p.Policy)
	r.Warnings = checkErrors(lacks)
	if unknown != "" {
		r.Skipped = append(r.Skipped, "whether the kernel has VRFs ("+unknown+")")
	}
	return r
}

func checkErrors(all policy.Errors) []checkError {
	r := make([]checkError, len(all))
	for i, d := range all {
		r[i] = checkError{d.Line, d.Column, d.EndLine, d.EndColumn, d.Message, d.Help}
	}
	return r
}

func (c *cli) printCheck(r checkReport, asJSON bool) error {
	if asJSON {
		if err := c.printJSON(r); err != nil || r.OK {
			return err
		}
		return told(exitPolicy)
	}
	for _, w := range r.Warnings {
		c.warn("%s:%d: %s; apply refuses it here\n  %s %s", r.File, w.Line, w.Message, c.paint(c.stderr).cyan("help:"), w.Help)
	}
	holds := count(r.Links, "link") + " and " + count(r.Workloads, "workload")
	if r.VRFs > 0 {
		holds = count(r.VRFs, "VRF") + ", " + holds
	}
	_, err := fmt.Fprintf(c.stdout, "%s: ok, %s\nskipped: %s\n", r.File, holds, strings.Join(r.Skipped, "; "))
	return err
}
