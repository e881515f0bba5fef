package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/plan"
)

// A doctorReport is the JSON of weir doctor.
type doctorReport struct {
	SchemaVersion string         `json:"schema_version"`
	Findings      []plan.Finding `json:"findings"`
}

func (c *cli) doctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [--json]",
		Short: "Say what this host can keep, and what would mend the rest",
		Long: `Say what this host can keep of what a policy may promise. A finding is ok, warn
(less than could be, or not known), fail (a promise cannot be kept) or skip (not
looked at, or needed by nobody), and says what stops working and what mends it.
Everything is found out by trying, in namespaces that are gone afterwards.
Exit code 1 says that something is missing.`,
		Example: `  sudo weir doctor
  sudo weir doctor --json | jq '.findings[] | select(.state != "ok")'`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.agent()
			if err != nil {
				return err
			}
			facts, err := a.HostFacts(cmd.Context())
			if err != nil {
				return fmt.Errorf("doctor: %w", err)
			}
			findings := plan.Doctor(facts)
			if asJSON {
				err = c.printJSON(doctorReport{schemaVersion, findings})
			} else {
				err = printFindings(c.stdout, c.paint(c.stdout), c.columns(c.stdout), findings)
			}
			if err == nil && tally(findings)[plan.FindingFail] > 0 {
				return told(exitFailed)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printFindings prints a line for what is ok, more for what is not, and a sum
// at the end where anything should be mended. What mends it stays in one piece: it
// is there to be copied.
func printFindings(w io.Writer, paint painter, columns int, findings []plan.Finding) error {
	colours := map[plan.FindingState]func(string) string{
		plan.FindingOK: paint.green, plan.FindingWarn: paint.yellow, plan.FindingFail: paint.red, plan.FindingSkip: paint.dim,
	}
	width := 0
	for _, f := range findings {
		width = max(width, len(f.ID))
	}
	var b strings.Builder
	for _, f := range findings {
		var line strings.Builder
		hang(&line, fmt.Sprintf("%-4s  %-*s  ", f.State, width, f.ID), f.Text, columns, nil)
		b.WriteString(strings.Replace(line.String(), string(f.State), colours[f.State](string(f.State)), 1))
		if f.Stops != "" {
			hang(&b, fmt.Sprintf("%*s  stops: ", width+6, ""), f.Stops, columns, nil)
		}
		if f.Mend != "" {
			fmt.Fprintf(&b, "%*s  mend:  %s\n", width+6, "", f.Mend)
		}
	}
	if t := tally(findings); t[plan.FindingWarn]+t[plan.FindingFail] > 0 {
		fmt.Fprintf(&b, "%d ok, %d warn, %d fail, %d skip\n",
			t[plan.FindingOK], t[plan.FindingWarn], t[plan.FindingFail], t[plan.FindingSkip])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func tally(findings []plan.Finding) map[plan.FindingState]int {
	t := map[plan.FindingState]int{}
	for _, f := range findings {
		t[f.State]++
	}
	return t
}
