package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/observe"
)

func (c *cli) costProbe() *cobra.Command {
	cpu, seconds, asJSON, load := 0, 10.0, false, false
	cmd := &cobra.Command{
		Use:   "probe --cpu N [--seconds S] [--json] [--during -- CMD [ARG]...]",
		Short: "Compute on one CPU, and tell what networking took of it",
		Long: `Compute on one CPU for some seconds, and tell what was left of it: a loop that does nothing
else finds out what came between. Effective is the part of the CPU's time in which it
computed, apparent what the kernel charges it for, and so what top shows; the difference was taken
from it in its own name. What interrupts for networking took is told beside that, and for whose
packets. With --during a command runs meanwhile, and is ended with SIGTERM where it still runs then; its
output goes to standard error.`,
		Example: `  sudo weir cost probe --cpu 1
  sudo weir cost probe --cpu 1 --seconds 5 --during -- iperf3 -c 10.0.0.2 -t 10`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case load && len(args) == 0:
				return &usageError{"--during has no command", "weir cost probe --cpu 1 --during -- CMD"}
			case !load && len(args) > 0:
				return &usageError{fmt.Sprintf("%q is one argument too many", args[0]), "a command comes after --during --"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("cpu"):
				return &usageError{"which CPU?", "weir cost probe --cpu 1"}
			case seconds < 0.1 || seconds > 3600:
				return &usageError{fmt.Sprintf("--seconds %g: not from 0.1 to 3600", seconds), "10 is the default"}
			}
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			p, err := c.probeCost(cmd.Context(), a, cpu, time.Duration(seconds*float64(time.Second)), args)
			var unusable *observe.UnusableCPU
			if errors.As(err, &unusable) {
				return &hinted{error: fmt.Errorf("cost probe: %w", err), help: []string{"those that can be used: " + numbers(unusable.Usable)}}
			}
			if err != nil {
				return fmt.Errorf("cost probe: %w", err)
			}
			if asJSON {
				return c.printJSON(p)
			}
			v := costView{painter: c.paint(c.stdout), width: c.columns(c.stdout), seconds: p.Seconds}
			_, err = fmt.Fprint(c.stdout, v.probe(p))
			return err
		},
	}
	cmd.Flags().IntVar(&cpu, "cpu", 0, "the CPU `N`, as /proc/cpuinfo numbers them")
	cmd.Flags().Float64Var(&seconds, "seconds", seconds, "for `S` seconds")
	cmd.Flags().BoolVar(&load, "during", false, "run a command meanwhile")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func numbers(all []int) string {
	var texts []string
	for _, n := range all {
		texts = append(texts, fmt.Sprint(n))
	}
	return strings.Join(texts, ", ")
}

// probeCost probes a CPU, with a command beside it where one is given.
func (c *cli) probeCost(ctx context.Context, a *agent.Agent, cpu int, during time.Duration, load []string) (_ *cost.Probe, err error) {
	m, err := a.MeasureCost(samplesPerSecond, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if len(load) == 0 {
		return m.Probe(ctx, cpu, during)
	}
	cmd := exec.CommandContext(ctx, load[0], load[1:]...)
	cmd.Stdout, cmd.Stderr = c.stderr, c.stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", load[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	p, err := m.Probe(ctx, cpu, during)
	select {
	case failed := <-ended:
		if p != nil {
			p.Warnings = append(p.Warnings, endedEarly(load[0], failed))
		}
	default:
		_ = cmd.Cancel()
		<-ended
	}
	return p, err
}

func endedEarly(command string, err error) string {
	if err != nil {
		return fmt.Sprintf("%s ended before the probe did: %v", command, err)
	}
	return command + " ended before the probe did"
}

// probe renders what a loop lost.
func (v *costView) probe(p *cost.Probe) string {
	t := table{columns: []column{{title: fmt.Sprintf("CPU %d, %s", p.CPU, inSeconds(p.Seconds))}, {title: "", right: true}, {title: ""}}}
	line := func(what string, percent float64, why string) {
		t.add(plainCells(what, fmt.Sprintf("%.1f %%", percent), why)...)
	}
	line("effective", p.Effective, "in this part of the time the loop computed")
	line("apparent", p.Apparent, "the kernel charges the loop for this, and top shows it")
	line("stolen", p.Stolen, "the difference: taken from the loop in its name")
	line("by the meter", p.Metered, "interrupts for networking took this, and the meter itself")
	line("  the meter", p.Meter, "of that its own programs took this")
	if p.Ksoftirqd > 0.05 {
		line("ksoftirqd", p.Ksoftirqd, "the kernel's thread for softirqs took this of the CPU besides")
	}
	t.render(&v.b, v.painter, "", v.width)
	if len(p.Owners) > 0 {
		v.b.WriteString("\n")
		v.parties("for packets of", slices.Clone(p.Owners), len(p.Owners))
	}
	for _, w := range p.Warnings {
		hang(&v.b, "warning: ", w, v.width, v.yellow)
	}
	return v.b.String()
}
