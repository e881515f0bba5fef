package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
)

func (c *cli) sockets() *cobra.Command {
	var q agent.SocketQuery
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sockets [--workload NAME] [--all] [--json]",
		Short: "Show which TCP sockets hold memory, and whose they are",
		Long: `Show which TCP sockets hold memory, whose they are, and how near the host is to
its tcp_mem, which is one for all. What a socket holds is what it has received and
nobody has read, what it has to send or has no acknowledgement of, and a little
that is reserved, all as the kernel charges it: more than the data in it. The most
that may be received is its rcvbuf; who writes has to wait above its sndbuf.
Of a workload with tcp-memory it says how much of its bound is in use, or free to
take for its sockets without asking, and the most of that so far; how often a
buffer was made smaller, and a connection squeezed or refused. Buffers of its
sockets are their own, capped, or squeezed to the least.
All network namespaces are looked at that have a process. A socket without one was
closed and still has something to send, or is the kernel's own. One that is not
accepted yet counts as its listener's. Without a policy no workload claims any, and
the sums are of cgroups. Nothing is changed.`,
		Example: `  sudo weir sockets
  sudo weir sockets --workload backup
  sudo weir sockets --json | jq '.holders[] | {workload, count, held}'`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("workload") && q.Workload == "" {
				return &usageError{"--workload needs a value", "weir sockets --workload NAME"}
			}
			a, err := c.privileged(cmd)
			if err != nil {
				return err
			}
			r, err := a.Sockets(cmd.Context(), q)
			if refused := unknownWorkload(err); refused != nil {
				return refused
			}
			if err != nil {
				return fmt.Errorf("sockets: %w", err)
			}
			if asJSON {
				return c.printJSON(r)
			}
			v := socketsView{painter: c.paint(c.stdout), width: c.columns(c.stdout), of: q.Workload}
			_, err = io.WriteString(c.stdout, v.render(r))
			return err
		},
	}
	cmd.Flags().StringVar(&q.Workload, "workload", "", "only those of the workload `NAME`")
	cmd.Flags().BoolVar(&q.All, "all", false, "also those that no workload claims, and those that hold nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	_ = cmd.RegisterFlagCompletionFunc("workload", c.completeWorkload)
	return cmd
}

// completeWorkload completes the workloads that are in force.
func (c *cli) completeWorkload(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.inTime(func(context.Context) ([]string, error) {
		a, err := c.agent()
		if err != nil {
			return nil, err
		}
		return a.Workloads()
	}), cobra.ShellCompDirectiveNoFileComp
}

// A socketsView renders who holds TCP memory for a terminal: sums, sockets, and the host.
type socketsView struct {
	painter
	width int
	of    string // the only workload that was asked for
	b     strings.Builder
}

func (v *socketsView) render(r *agent.SocketReport) string {
	switch {
	case len(r.Holders) > 0:
		v.sums(r.Holders)
		v.bounds(r.Holders)
		v.sockets(r.Holders)
		v.left(r.Holders)
	case v.of != "":
		fmt.Fprintf(&v.b, "%s has no TCP socket\n", v.of)
	default:
		v.b.WriteString("no TCP sockets\n")
	}
	fmt.Fprintf(&v.b, "\n%s\n", v.host(r.TCPMemory))
	for _, w := range r.Warnings {
		hang(&v.b, "warning: ", w, v.width, v.yellow)
	}
	return v.b.String()
}

// unclaimed stands in the place of a workload for sockets that none claims.
const unclaimed = "unclaimed"

func (v *socketsView) sums(all []agent.SocketHolder) {
	t := table{columns: []column{
		{title: "workload"}, {title: "cgroup"}, {title: "sockets", right: true}, {title: "held", right: true},
		{title: "received", right: true, rank: 2}, {title: "to send", right: true, rank: 1},
	}}
	for _, h := range all {
		t.add(plainCells(cmp.Or(h.Workload, unclaimed), h.Cgroup, grouped(uint64(h.Count)), amount(h.Held), amount(h.Receive), amount(h.Send))...)
	}
	t.render(&v.b, v.painter, "", v.width)
}

// bounds shows what workloads have of what they may hold.
func (v *socketsView) bounds(all []agent.SocketHolder) {
	t := table{columns: []column{
		{title: "bounded"}, {title: "in use", right: true}, {title: "highest", right: true, rank: 1}, {title: "soft", right: true, rank: 2},
		{title: "max", right: true}, {title: "full", right: true}, {title: "throttled", right: true, rank: 3}, {title: "squeezed", right: true, rank: 4},
		{title: "refused", right: true, rank: 3},
	}}
	for _, h := range all {
		if h.Memory == nil {
			continue
		}
		b, p := h.Memory.Bound, h.Memory.Pool
		soft := amount(uint64(b.Soft))
		if b.Soft == 0 { // memcg has one limit
			soft = ""
		}
		cells := plainCells(h.Workload, amount(p.May), amount(p.Most), soft, amount(uint64(b.Max)), percent(h.Memory.Full()),
			grouped(p.Throttled), grouped(p.Squeezed), grouped(p.Refused))
		cells[5].colour = v.fullness(h.Memory)
		t.add(cells...)
	}
	if len(t.rows) > 0 {
		v.b.WriteString("\n")
	}
	t.render(&v.b, v.painter, "", v.width)
}

// fullness is how what is above its bounds looks.
func (p painter) fullness(m *plan.MemoryJudged) func(string) string {
	switch {
	case m.Pool.May > uint64(m.Bound.Max):
		return p.red
	case m.Bound.Soft != 0 && m.Pool.May > uint64(m.Bound.Soft):
		return p.yellow
	}
	return nil
}

// sockets shows those that are told, who holds most first.
func (v *socketsView) sockets(all []agent.SocketHolder) {
	type row struct {
		workload string
		agent.SocketUse
	}
	var rows []row
	several := slices.ContainsFunc(all, func(h agent.SocketHolder) bool { return h.Workload != all[0].Workload })
	for _, h := range all {
		name := "" // the sums tell of the only one
		if several {
			name = cmp.Or(h.Workload, unclaimed)
		}
		for _, s := range h.Sockets {
			rows = append(rows, row{name, s})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.Held, a.Held) })
	t := table{columns: []column{
		{title: "workload"}, {title: "state", rank: 4}, {title: "local", rank: 5}, {title: "peer", rank: 1}, {title: "process"},
		{title: "held", right: true}, {title: "received", right: true, rank: 3}, {title: "rcvbuf", right: true, rank: 6},
		{title: "to send", right: true, rank: 2}, {title: "sndbuf", right: true, rank: 6}, {title: "buffers", rank: 3},
	}}
	for _, s := range rows {
		t.add(plainCells(s.workload, stateOf(s.SocketUse), s.Local, cmp.Or(s.Peer, "*"), processOf(s.Processes), amount(s.Held),
			amount(s.Receive), amount(s.ReceiveBuffer), amount(s.Send), amount(s.SendBuffer), fitted(s.Bound))...)
	}
	if len(rows) > 0 {
		v.b.WriteString("\n")
	}
	t.render(&v.b, v.painter, "", v.width)
}

func stateOf(s agent.SocketUse) string {
	switch {
	case !s.Accepted:
		return "not accepted"
	case s.Protocol != "tcp":
		return s.State + ", " + s.Protocol
	}
	return s.State
}

// fitted says what a bound has made of a socket's buffers.
func fitted(h *plan.Holding) string {
	switch {
	case h == nil:
		return ""
	case h.Squeezed:
		return "squeezed"
	case h.Capped:
		return "capped"
	}
	return "its own"
}

// processOf names one of the processes that have a socket open.
func processOf(all []agent.SocketProcess) string {
	switch len(all) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%d %s", all[0].PID, all[0].Name)
	}
	return fmt.Sprintf("%d %s and %d more", all[0].PID, all[0].Name, len(all)-1)
}

// left counts what is not told, and says what tells it.
func (v *socketsView) left(all []agent.SocketHolder) {
	empty, nobodys := 0, 0
	for _, h := range all {
		if h.Workload == "" && h.Cgroup == "" && len(h.Sockets) == 0 {
			nobodys += h.Count
		} else {
			empty += h.Count - len(h.Sockets)
		}
	}
	var parts []string
	if nobodys > 0 {
		parts = append(parts, count(nobodys, "socket")+" that no workload claims")
	}
	if empty > 0 {
		parts = append(parts, count(empty, "empty socket"))
	}
	if len(parts) > 0 {
		hang(&v.b, "", "not shown: "+strings.Join(parts, ", ")+" (--all)", v.width, v.dim)
	}
}

// host says how near the host is to its limits.
func (v *socketsView) host(m plan.TCPMemory) string {
	text := memoryLine(m)
	if colour := v.pressure(m); colour != nil {
		return colour(text)
	}
	return text
}

func memoryLine(m plan.TCPMemory) string {
	if !m.Known() {
		return fmt.Sprintf("TCP memory: %s; the limits are seen in the host's own network namespace", amount(m.Used))
	}
	return fmt.Sprintf("TCP memory: %s of %s (pressure from %s)", amount(m.Used), amount(m.Max), amount(m.Pressure))
}

// pressure is how what is near its limits looks.
func (p painter) pressure(m plan.TCPMemory) func(string) string {
	switch {
	case m.Full():
		return p.red
	case m.Presses():
		return p.yellow
	}
	return nil
}
