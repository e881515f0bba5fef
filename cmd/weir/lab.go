package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/lab"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

func (c *cli) lab() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Experiments that show the effect of a contract before and after",
		Long: `Experiments in throw-away network namespaces that show the effect of a contract
before and after: real hosts' stacks, real queues, real TCP. No device of this
host is touched.`,
		Example: `  weir lab list
  sudo weir lab run ssh                    a table, and a page with plots
  weir lab page ssh.json -o ssh.html       the page again, from the data alone`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.labList(), c.labRun(), c.labPage())
	return cmd
}

// A labInfo is one lab in the JSON of weir lab list.
type labInfo struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	Arms    []string `json:"arms"`
}

// A labsReport is the JSON of weir lab list.
type labsReport struct {
	SchemaVersion string    `json:"schema_version"`
	Labs          []labInfo `json:"labs"`
}

func (c *cli) labList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [--json]",
		Short: "List the labs",
		Example: `  weir lab list
  weir lab list --json`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(*cobra.Command, []string) error {
			r := labsReport{SchemaVersion: schemaVersion}
			var b strings.Builder
			for _, l := range lab.List() {
				r.Labs = append(r.Labs, labInfo{l.Name, l.Summary, l.Arms})
				hang(&b, fmt.Sprintf("%-10s  ", l.Name), l.Summary, c.columns(c.stdout), nil)
			}
			if asJSON {
				return c.printJSON(r)
			}
			_, err := io.WriteString(c.stdout, b.String())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// labNames completes and suggests.
func labNames() []string {
	var names []string
	for _, l := range lab.List() {
		names = append(names, l.Name)
	}
	return names
}

// A rateFlag is a bandwidth between the bounds of the labs.
type rateFlag struct{ value policy.Rate }

func (f *rateFlag) String() string {
	if f.value == 0 {
		return ""
	}
	return f.value.String()
}

func (f *rateFlag) Type() string { return "rate" }

func (f *rateFlag) Set(s string) error {
	r, err := policy.ParseRate(s)
	if err != nil {
		return err
	}
	if r < lab.MinRate || r > lab.MaxRate {
		return &usageError{fmt.Sprintf("not from %s to %s", lab.MinRate, lab.MaxRate), "100Mbit is the default"}
	}
	f.value = r
	return nil
}

// broken reports whether a lab did not show what it should.
func broken(r report.Result) bool {
	for _, claim := range r.Claims {
		if claim.Kept != nil && !*claim.Kept {
			return true
		}
	}
	return false
}
