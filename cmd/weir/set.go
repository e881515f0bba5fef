package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/workload"
)

// setFlags name one target and what it gets.
type setFlags struct {
	pid, cgroup, unit string
	terms             termsFlags
	clear             bool
}

func (c *cli) set() *cobra.Command {
	var f setFlags
	cmd := &cobra.Command{
		Use:   "set (--pid N | --cgroup PATTERN | --unit NAME) ([--priority N] [--egress-max RATE] [--ingress-max RATE [--ingress-method METHOD]] [--tcp-memory-max SIZE] [--vrf NAME] | --clear) [--via VIA]",
		Short: "Change a running workload, its open connections included",
		Long: `Give a running process, cgroup or unit a contract, in place of what the policy
says of it, limits included: a priority, a limit on all links together, one on what
its sockets receive, a bound on what its TCP sockets hold in memory, a VRF, or any of these.
Open connections change at their next packet, future ones and children are
included, and nothing is moved anywhere. What is not named stays as weir set gave
it before; --clear takes all of it back.

A limit of what it sends paces TCP, from kernel 6.12 on open connections too; UDP
and all else are held by drops, as is all that it receives: who sends that is paced
by nobody here. TCP loses hardly anything where what the workload answers waits: by links that
keep times of departure, or in a class of an htb of Weir's own, by any of Ethernet. --ingress-method
edt is refused where a link keeps no times: an ingress limit in the policy, or method: edt of any,
has weir apply prepare them; htb is refused where one is not of Ethernet. --egress-max none and
--ingress-max none take one limit back alone.
Where the kernel can not pace, what is sent waits in an fq, which weir apply puts on
all links there unless one of them is htb, mqprio or none, or held to a rate.

A bound on TCP memory is given as one: --tcp-memory-soft is half of --tcp-memory-max
and --tcp-memory-when-full is squeeze where they are left out. Open connections are held to it as
their peers read; --tcp-memory-max none gives them their buffers back.

--vrf binds sockets to a VRF as they are made, one of the policy or any other that
the host has; those that are open stay where they are. If that VRF goes away they
reach nothing, rather than what is outside of it. --vrf none takes it back alone.

A process may also be given its priority by the cgroup v1 controller net_prio,
which needs no policy and does move it: --via net_prio.`,
		Example: `  sudo weir set --pid 730 --priority 4
  sudo weir set --unit nginx --priority eth0=12,default=8
  sudo weir set --pid 730 --egress-max 10Mbit
  sudo weir set --unit torrent --egress-max 5Mbit --ingress-max 20Mbit
  sudo weir set --unit mirror --ingress-max 100Mbit --ingress-method edt
  sudo weir set --unit crawler --tcp-memory-max 64MiB --tcp-memory-when-full refuse
  sudo weir set --unit chrony --vrf mgmt
  sudo weir set --pid 730 --clear`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE:              func(cmd *cobra.Command, _ []string) error { return c.runSet(cmd, f) },
	}
	cmd.Flags().StringVar(&f.pid, "pid", "", "the process `N`, and its children")
	cmd.Flags().StringVar(&f.cgroup, "cgroup", "", "the cgroups that a `PATTERN` matches: /batch/**")
	cmd.Flags().StringVar(&f.unit, "unit", "", "the systemd unit `NAME`")
	c.addTerms(cmd, &f.terms)
	cmd.Flags().BoolVar(&f.clear, "clear", false, "take back what weir set gave")
	_ = cmd.RegisterFlagCompletionFunc("pid", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("cgroup", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("unit", c.completeUnit)
	return cmd
}

func (c *cli) runSet(cmd *cobra.Command, f setFlags) error {
	target, err := f.target()
	if err != nil {
		return err
	}
	if err := f.terms.check(); err != nil {
		return err
	}
	if f.clear == f.terms.given() {
		kind, value, _ := strings.Cut(target.String(), ": ")
		return &usageError{"weir set needs --priority, --egress-max, --ingress-max, --tcp-memory-max or --vrf, or else --clear", shellLine([]string{"weir", "set", "--" + kind, value, "--priority", "N"})}
	}
	a, err := c.privileged(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	said := ""
	switch {
	case target.Kind == policy.KindPID:
		said, err = c.setProcess(ctx, a, target.PID, f)
	case f.clear:
		said = target.String() + ": what the policy says"
		err = patiently(ctx, amongMany, func() error { return a.ClearGroup(ctx, target) })
	default:
		said = target.String() + ": " + f.terms.String()
		if err = knownLinks(a, f.terms.priority.value); err == nil {
			err = patiently(ctx, amongMany, func() error { return a.SetGroup(ctx, target, f.terms.terms()) })
			err = c.namingVRFs(err, f.terms.vrf.value)
		}
	}
	if err != nil {
		return fmt.Errorf("set %s: %w", target, err)
	}
	_, err = fmt.Fprintln(c.stdout, said)
	return err
}

// target is the one thing that is to be changed.
func (f setFlags) target() (s policy.Selector, err error) {
	given := 0
	for _, v := range []string{f.pid, f.cgroup, f.unit} {
		if v != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return s, &usageError{"weir set needs one of --pid, --cgroup and --unit", "weir set --pid N --priority 4"}
	case f.pid != "":
		s.Kind = policy.KindPID
		s.PID, err = policy.ParsePID(f.pid)
	case f.cgroup != "":
		s.Kind = policy.KindCgroup
		s.Cgroup, err = policy.ParseCgroup(f.cgroup)
	default:
		s.Kind = policy.KindUnit
		s.Cgroup, err = policy.ParseUnit(f.unit)
	}
	if err != nil {
		return s, &usageError{err.Error(), "weir set --help"}
	}
	if s.Kind != policy.KindPID && viaOf(f.terms.via) == policy.ViaNetPrio {
		return s, &usageError{"net_prio knows processes only", "weir set --pid N --via net_prio --priority 4"}
	}
	return s, nil
}

// setProcess sets or clears one process and says what is so now.
func (c *cli) setProcess(ctx context.Context, a *agent.Agent, pid uint32, f setFlags) (string, error) {
	name := strconv.FormatUint(uint64(pid), 10)
	if p, err := workload.ReadProcess(pid); err == nil {
		name += " (" + p.Name + ")"
	}
	via := viaOf(f.terms.via)
	switch {
	case f.clear && via == policy.ViaNetPrio:
		return "process " + name + ": back where it was", patiently(ctx, amongMany, func() error { return a.ClearNetPrio(pid) })
	case f.clear:
		return "process " + name + ": what the policy says", patiently(ctx, amongMany, func() error { return a.Clear(ctx, pid) })
	}
	said := "process " + name + ": " + f.terms.String() + ", with its open sockets and its children"
	if f.terms.vrf.given {
		said = "process " + name + ": " + f.terms.String() + ", with its children; sockets that are open stay in their VRF"
	}
	if via == policy.ViaNetPrio {
		said = "process " + name + ": " + f.terms.String() + " by net_prio, with its open sockets and its future children"
	}
	return said, c.give(ctx, a, pid, &f.terms)
}
