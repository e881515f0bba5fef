package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/report"
)

// fewestPairs is with how many something can be said at all.
const fewestPairs = 3

func (c *cli) costCompare() *cobra.Command {
	var a, b string
	pairs, asJSON := 6, false
	cmd := &cobra.Command{
		Use:   "compare --a CMD --b CMD [-n N] [--json] [-- LOAD [ARG]...]",
		Short: "Compare what two commands take in CPU time for networking",
		Long: `Compare what two commands take in CPU time for networking: each runs by a shell, by turns, and
what interrupts and calls took meanwhile is set against packets and bits. With a LOAD behind -- the two are run
first and are not measured, and the load after each of them is: so two policies are compared, or two
settings of a device. B is told against A, with a confidence of 99 %; a ~ stands where no
difference could be shown. All networking of the host counts, so it should have nothing else to
do. Output of the commands goes to standard error.`,
		Example: `  sudo weir cost compare --a 'iperf3 -c 10.0.0.2 -t 5' --b 'iperf3 -c 10.0.0.2 -t 5 -l 1k'
  sudo weir cost compare --a 'weir apply one.yaml' --b 'weir apply two.yaml' -- iperf3 -c 10.0.0.2 -t 5`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return &usageError{fmt.Sprintf("%q is one argument too many", args[0]), "a load comes after --"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, load []string) error {
			switch {
			case a == "" || b == "":
				return &usageError{"two commands are compared: --a CMD and --b CMD", "weir cost compare --help"}
			case pairs < fewestPairs || pairs > 100:
				return &usageError{fmt.Sprintf("-n %d: not from %d to 100", pairs, fewestPairs), "6 is the default"}
			}
			agent, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			r, err := c.compareCosts(cmd.Context(), agent, contest{a, b, load, pairs})
			if err != nil {
				return fmt.Errorf("cost compare: %w", err)
			}
			if asJSON {
				return c.printJSON(r)
			}
			v := costView{painter: c.paint(c.stdout), width: c.columns(c.stdout)}
			_, err = fmt.Fprint(c.stdout, v.comparison(r))
			return err
		},
	}
	cmd.Flags().StringVar(&a, "a", "", "the one `CMD`, for sh -c")
	cmd.Flags().StringVar(&b, "b", "", "the other `CMD`")
	cmd.Flags().IntVarP(&pairs, "pairs", "n", pairs, "run both `N` times")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// A contest is what is compared.
type contest struct {
	a, b  string
	load  []string
	pairs int
}

func (c *cli) compareCosts(ctx context.Context, a *agent.Agent, of contest) (_ *cost.Comparison, err error) {
	m, err := a.MeasureCost(samplesPerSecond, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	r := &cost.Comparison{SchemaVersion: schemaVersion, A: of.a, B: of.b, Load: strings.Join(of.load, " "), Pairs: of.pairs}
	progress := c.progress()
	defer progress.end()
	var as, bs []cost.Measured
	for n := range of.pairs {
		// Who is first changes, so that a host that becomes slower or faster favours nobody.
		for _, first := range []bool{n%2 == 0, n%2 == 1} {
			command, into := of.b, &bs
			if first {
				command, into = of.a, &as
			}
			progress.step(fmt.Sprintf("pair %d of %d: %s", n+1, of.pairs, command))
			measured, err := c.contend(ctx, m, command, of.load)
			if err != nil {
				return nil, err
			}
			*into = append(*into, measured)
		}
	}
	r.Measures = cost.Compare(as, bs)
	return r, nil
}

// contend measures a command, or its load.
func (c *cli) contend(ctx context.Context, m *agent.CostMeter, command string, load []string) (cost.Measured, error) {
	shell := []string{"sh", "-c", command}
	if len(load) == 0 {
		return m.During(func() error { return c.runQuietly(ctx, command, shell) })
	}
	if err := c.runQuietly(ctx, command, shell); err != nil {
		return cost.Measured{}, err
	}
	return m.During(func() error { return c.runQuietly(ctx, load[0], load) })
}

// runQuietly runs a command whose output is no result of ours.
func (c *cli) runQuietly(ctx context.Context, name string, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = c.stderr, c.stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	return nil
}

var measureWords = map[string]string{
	"stolen_percent": "taken by interrupts", "cpu_percent": "taken by all networking", "ns_per_packet": "a packet", "seconds_per_gbit": "a Gbit",
	"packets_per_second": "packets/s", "mbit": "Mbit/s", "seconds": "it lasted",
}

// comparison renders what was compared: the verdict first.
func (v *costView) comparison(r *cost.Comparison) string {
	stolen := r.Measures[0]
	switch {
	case stolen.Differ:
		fmt.Fprintf(&v.b, "B steals %s, over %d pairs\n\n", against(stolen), r.Pairs)
	default:
		fmt.Fprintf(&v.b, "no difference in what they steal could be shown, over %d pairs\n\n", r.Pairs)
	}
	t := table{columns: []column{{title: "CPU time"}, {title: "A", right: true}, {title: "B", right: true}, {title: "B against A"}, {title: "n", right: true, rank: 1}}}
	for _, m := range r.Measures {
		verdict := "~"
		if m.Differ {
			verdict = against(m)
		}
		t.add(plainCells(measureWords[m.Name], inUnit(m.A, m.Unit), inUnit(m.B, m.Unit), verdict, fmt.Sprint(len(m.A)))...)
	}
	t.render(&v.b, v.painter, "", v.width)
	for _, w := range r.Warnings {
		hang(&v.b, "warning: ", w, v.width, v.yellow)
	}
	return v.b.String()
}

// against is how much more or less B has, in per cent of A.
func against(m cost.Compared) string {
	word := "less"
	if *m.Ratio > 1 {
		word = "more"
	}
	return fmt.Sprintf("%.3g %% ± %.2g %s", 100*math.Abs(*m.Ratio-1), 100*(*m.High-*m.Low)/2, word)
}

// inUnit is the median of samples.
func inUnit(samples []float64, unit string) string {
	if len(samples) == 0 {
		return ""
	}
	median := report.Summarise("", samples).Median
	if strings.HasPrefix(unit, "/") || unit == "Mbit/s" {
		unit = ""
	}
	return strings.TrimSpace(figure(median) + " " + unit)
}
