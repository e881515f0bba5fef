package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/workload"
)

// explainFlags name one subject.
type explainFlags struct {
	pid, socket, flow string
	json              bool
}

func (c *cli) explain() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain (--pid N | --socket SOCKET | --flow FLOW) [--json]",
		Short: "Say which rule a process, a socket or a flow hits, and why",
		Long: `Say which rule a process, a socket or a flow hits, why that one and not the
others, and what it means on each link; then what the kernel itself says of it.
A socket is named as ss shows it, local end first. A flow is a packet without a
socket here, as one that is forwarded.`,
		Example: `  sudo weir explain --pid 730
  sudo weir explain --socket "tcp 10.0.0.1:22 10.0.0.2:4711"
  sudo weir explain --flow "tcp 10.1.2.3:5000 > 192.0.2.1:22 dscp 46"`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask, err := f.question()
			if err != nil {
				return err
			}
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			x, err := ask(cmd.Context(), a)
			if err != nil {
				return err
			}
			whole(x)
			if f.json {
				return c.printJSON(x)
			}
			_, err = io.WriteString(c.stdout, explanation(c.paint(c.stdout), c.columns(c.stdout), x))
			return err
		},
	}
	cmd.Flags().StringVar(&f.pid, "pid", "", "the process `N`: what its next socket gets, and each open one")
	cmd.Flags().StringVar(&f.socket, "socket", "", "a `SOCKET` of this host: PROTOCOL LOCAL [REMOTE]")
	cmd.Flags().StringVar(&f.flow, "flow", "", "a `FLOW`: PROTOCOL SOURCE > DESTINATION [dscp N]")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	for _, name := range []string{"pid", "socket", "flow"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

// A question is put to the agent.
type question func(context.Context, *agent.Agent) (*agent.Explanation, error)

// question turns the flags into what to ask the agent.
func (f explainFlags) question() (question, error) {
	given := 0
	for _, v := range []string{f.pid, f.socket, f.flow} {
		if v != "" {
			given++
		}
	}
	var (
		q   question
		err error
	)
	switch {
	case given != 1:
		return nil, &usageError{"weir explain needs one of --pid, --socket and --flow", "weir explain --pid N"}
	case f.pid != "":
		var pid uint32
		pid, err = policy.ParsePID(f.pid)
		q = func(ctx context.Context, a *agent.Agent) (*agent.Explanation, error) {
			return a.ExplainPID(ctx, pid)
		}
	case f.socket != "":
		var spec workload.SocketSpec
		spec, err = workload.ParseSocketSpec(f.socket)
		q = func(ctx context.Context, a *agent.Agent) (*agent.Explanation, error) {
			return a.ExplainSocket(ctx, spec)
		}
	default:
		var packet plan.Packet
		packet, err = plan.ParsePacket(f.flow)
		q = func(ctx context.Context, a *agent.Agent) (*agent.Explanation, error) {
			return a.ExplainFlow(ctx, packet, f.flow)
		}
	}
	if err != nil {
		return nil, &usageError{err.Error(), "weir explain --help"}
	}
	return q, nil
}

// whole makes lists of what is absent, for those who read JSON.
func whole(x *agent.Explanation) {
	if x.Reasons == nil {
		x.Reasons = []plan.Reason{}
	}
	for i := range x.Sockets {
		whole(&x.Sockets[i])
	}
}

// explanation renders what was found out for a terminal.
func explanation(paint painter, width int, x *agent.Explanation) string {
	var b strings.Builder
	explainOne(&b, paint, width, x, "")
	if len(x.Sockets) > 0 {
		fmt.Fprintf(&b, "\n%s:\n", count(len(x.Sockets), "open socket"))
	}
	for i := range x.Sockets {
		explainOne(&b, paint, width, &x.Sockets[i], "  ")
	}
	return b.String()
}

func explainOne(b *strings.Builder, paint painter, width int, x *agent.Explanation, indent string) {
	owner := paint.yellow("belongs to no workload")
	if x.Workload != "" {
		owner = "belongs to " + paint.green(x.Workload)
	}
	fmt.Fprintf(b, "%s%s %s\n", indent, x.Subject, owner)
	t := table{columns: []column{{title: ""}, {title: "rule"}, {title: "workload", rank: 1}}}
	why := ""
	for _, r := range x.Reasons {
		mark := cell{"loses", paint.dim}
		switch {
		case r.Wins:
			mark, why = cell{"wins", paint.green}, r.Why
		case r.Binds:
			mark = cell{"binds", paint.yellow}
		}
		t.add(mark, cell{text: r.Rule}, cell{text: r.Workload})
	}
	t.render(b, paint, indent+"  ", width)
	if why != "" { // those that lose all come after it
		hang(b, indent+"  why: ", why, width, nil)
	}
	for _, p := range x.Promises {
		hang(b, indent+"  on ", p, width, nil)
	}
	for _, l := range x.Limits {
		hang(b, indent+"  limit of ", l, width, paint.dim)
	}
	for _, r := range x.Reasons {
		if r.Binds {
			hang(b, indent+"  with all of ", r.Workload+": "+strings.Join(r.Limits, ", "), width, nil)
		}
	}
	colour := paint.dim
	if x.Agrees != nil && !*x.Agrees {
		colour = paint.red
	}
	hang(b, indent+"  the kernel: ", x.Kernel, width, colour)
}
