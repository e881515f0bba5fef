package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/steer"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/screen"
)

// steerFlags are those of weir steer, beside those of its live view.
type steerFlags struct {
	show, undo, rpsOff, irq bool
	cpu, queue              int
	macs, addrs             []string
}

func (c *cli) steer() *cobra.Command {
	var f steerFlags
	var live liveFlags
	cmd := &cobra.Command{
		Use:   "steer (LINK --cpu N [--queue Q] [--irq] [--dst MAC | --to ADDR]... | LINK --rps-off | --show [LINK] | --undo [LINK])",
		Short: "Have one CPU handle what a link receives, for an experiment",
		Long: `Have one CPU handle what a link receives, for an experiment, and put everything
back after it. A card hands packets to queues by a hash (RSS), and the kernel to
CPUs (RPS, RFS): that ends, and what remains is the queue whose interrupt comes to
that CPU. All packets go there by the RSS table; with --dst or --to only those to
an address, by flow rules. A link without such queues hands all its packets to the
CPU by RPS. What the device can not do is said, and then nothing is changed. What
was there is remembered first: weir steer --undo puts it back, and so does weir
reset, also after a crash. It is no part of the policy; weir status tells of it.
--show tells which queue receives what, and to which CPU its interrupt comes.`,
		Example: `  sudo weir steer --show eth0                          # q ends
  sudo weir steer eth0 --cpu 5
  sudo weir steer eth0 --cpu 5 --dst 12:34:de:ad:ca:fe # only packets to one machine
  sudo weir steer --undo`,
		Args:              upTo("LINK"),
		ValidArgsFunction: c.completeLink,
		RunE: func(cmd *cobra.Command, args []string) error {
			link := ""
			if len(args) > 0 {
				link = args[0]
			}
			ask, err := f.check(cmd, link, &live)
			if err != nil {
				return err
			}
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			switch {
			case f.show:
				err = c.showQueues(cmd.Context(), a, &live, link)
			case f.undo:
				err = c.unsteer(cmd.Context(), a, link)
			default:
				err = c.steerLink(cmd.Context(), a, link, ask, live.asJSON)
			}
			return c.aboutSteering(cmd.Context(), link, err)
		},
	}
	cmd.Flags().IntVar(&f.cpu, "cpu", 0, "the CPU `N` shall handle the packets")
	cmd.Flags().IntVar(&f.queue, "queue", 0, "by the queue `Q` (without it: one whose interrupt comes to the CPU)")
	cmd.Flags().BoolVar(&f.irq, "irq", false, "have the queue's interrupt come to the CPU")
	cmd.Flags().StringArrayVar(&f.macs, "dst", nil, "only packets to the `MAC` address; may be repeated")
	cmd.Flags().StringArrayVar(&f.addrs, "to", nil, "only packets to the IP address `ADDR`; may be repeated")
	cmd.Flags().BoolVar(&f.rpsOff, "rps-off", false, "only end RPS and RFS: packets stay where they arrive")
	cmd.Flags().BoolVar(&f.show, "show", false, "show what each queue receives, and where that is handled")
	cmd.Flags().BoolVar(&f.undo, "undo", false, "put back what was there, on all links without one")
	live.add(cmd)
	for _, name := range []string{"cpu", "queue", "dst", "to"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

// check reads the flags, and returns a *usageError for those that can not be meant together.
func (f *steerFlags) check(cmd *cobra.Command, link string, live *liveFlags) (ask plan.SteerAsk, err error) {
	given := func(names ...string) (first string) {
		for _, name := range names {
			if cmd.Flags().Changed(name) && first == "" {
				first = "--" + name
			}
		}
		return first
	}
	of := []string{"cpu", "queue", "irq", "dst", "to", "rps-off"} // those that steer
	views := []string{"once", "times", "interval"}
	ask = plan.SteerAsk{CPU: f.cpu, Queue: plan.NoQueue, Move: f.irq}
	switch {
	case f.show && f.undo:
		return ask, &usageError{"--show and --undo exclude each other", "weir steer --help"}
	case f.show && given(of...) != "":
		return ask, &usageError{fmt.Sprintf("--show changes nothing, and %s does", given(of...)), "weir steer --show [LINK]"}
	case f.show:
		return ask, live.check(cmd)
	case f.undo && given(append(of, "json")...) != "":
		return ask, &usageError{fmt.Sprintf("--undo has no use for %s", given(append(of, "json")...)), "weir steer --undo [LINK]"}
	case given(views...) != "":
		return ask, &usageError{fmt.Sprintf("%s is for --show", strings.Replace(given(views...), "--times", "-n", 1)), "weir steer --show [LINK]"}
	case f.undo:
		return ask, nil
	case link == "":
		return ask, &usageError{"which link?", "weir steer LINK --cpu N; weir steer --show shows all of them"}
	case f.rpsOff && given(of[:5]...) != "":
		return ask, &usageError{fmt.Sprintf("--rps-off and %s exclude each other", given(of[:5]...)), "--cpu ends RPS as well"}
	case f.rpsOff:
		ask.CPU = plan.NoCPU
		return ask, nil
	case given("cpu") == "":
		return ask, &usageError{"which CPU?", "weir steer " + link + " --cpu N"}
	case f.cpu < 0:
		return ask, &usageError{fmt.Sprintf("--cpu %d: there is no such CPU", f.cpu), "they are numbered from 0 on"}
	case given("queue") != "" && f.queue < 0:
		return ask, &usageError{fmt.Sprintf("--queue %d: there is no such queue", f.queue), "they are numbered from 0 on"}
	case given("queue") != "":
		ask.Queue = f.queue
	}
	for _, text := range f.macs {
		m, err := plan.ParseMAC(text)
		if err != nil {
			return ask, &usageError{"--dst " + err.Error(), "--to takes an IP address"}
		}
		ask.MACs = append(ask.MACs, m)
	}
	for _, text := range f.addrs {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return ask, &usageError{fmt.Sprintf("--to %q is no IP address such as 10.0.0.2 or fd00::2", text), "--dst takes a MAC address"}
		}
		ask.Addrs = append(ask.Addrs, a)
	}
	return ask, nil
}

// aboutSteering adds what a caller needs to know to an error.
func (c *cli) aboutSteering(ctx context.Context, link string, err error) error {
	var unusable *steer.UnusableCPU
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unusable):
		return &hinted{error: fmt.Errorf("steer: %w", err), help: []string{"those that are on: " + unusable.Online.String()}}
	case errors.Is(err, steer.ErrNoDevice):
		help := "ip link shows those that are"
		if names := c.links(ctx); policy.Suggest(link, names) != "" {
			help = didYouMean(link, names, "")
		}
		return &hinted{error: fmt.Errorf("steer: %w", err), help: []string{help}}
	case errors.Is(err, agent.ErrRolledBack):
		return coded{error: fmt.Errorf("steer: %w", err), code: exitRolledBack}
	}
	return fmt.Errorf("steer: %w", err)
}

// links are the names of the host's links, none where they can not be read.
func (c *cli) links(ctx context.Context) (names []string) {
	scope, err := c.scope()
	if err != nil {
		return nil
	}
	_ = host.InNetns(scope.Netns, func() error {
		names, err = steer.Names()
		return err
	})
	return names
}

// completeLink completes the first argument by the links that are there.
func (c *cli) completeLink(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.inTime(func(ctx context.Context) ([]string, error) { return c.links(ctx), nil }), cobra.ShellCompDirectiveNoFileComp
}

func (c *cli) steerLink(ctx context.Context, a *agent.Agent, link string, ask plan.SteerAsk, asJSON bool) error {
	// Half a change is worse than one that a signal has to wait for.
	done, err := a.Steer(context.WithoutCancel(ctx), link, ask)
	if err != nil {
		return err
	}
	if asJSON {
		return c.printJSON(done)
	}
	var b strings.Builder
	for _, change := range done.Changes {
		fmt.Fprintf(&b, "~ %s\n", change)
	}
	if len(done.Changes) == 0 {
		fmt.Fprintf(&b, "No changes: %s is steered so already.\n", link)
	} else {
		fmt.Fprintf(&b, "%s, by %s.\nweir steer --undo %s puts back what was there.\n", steeredTo(link, done.CPU), done.Way, link)
	}
	for _, w := range done.Warnings {
		hang(&b, "warning: ", w, c.columns(c.stdout), c.paint(c.stdout).yellow)
	}
	_, err = io.WriteString(c.stdout, b.String())
	return err
}

// steeredTo says what was done to a link; without a CPU each queue stays on its own.
func steeredTo(link string, cpu *int) string {
	if cpu == nil {
		return "link " + link + " is steered"
	}
	return fmt.Sprintf("link %s is steered to CPU %d", link, *cpu)
}

func (c *cli) unsteer(ctx context.Context, a *agent.Agent, link string) error {
	links, err := a.Unsteer(context.WithoutCancel(ctx), link)
	if err != nil {
		return err
	}
	text := "Nothing was steered.\n"
	if len(links) > 0 {
		text = fmt.Sprintf("Put back: %s.\n", strings.Join(links, ", "))
	}
	_, err = io.WriteString(c.stdout, text)
	return err
}

func (c *cli) showQueues(ctx context.Context, a *agent.Agent, live *liveFlags, link string) error {
	watched, apart := a.WatchQueues(link), live.interval
	if c.onScreen(live) {
		apart = min(apart, firstLook)
	}
	return watch(ctx, c, live, screen.Screen[*agent.QueueRates]{
		Read: func(ctx context.Context) (*agent.QueueRates, error) { return watched.Next(ctx, apart) },
		Render: func(r *agent.QueueRates, width, height int) string {
			v := steerView{painter: c.paint(c.stdout), width: width, height: height}
			return v.render(r)
		},
	})
}
