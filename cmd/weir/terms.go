package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// termsFlags say what a process or a group gets.
type termsFlags struct {
	priority priorityFlag
	max      maxFlag
	via      string
}

// addTerms adds the flags that say what a process or a group gets.
func (c *cli) addTerms(cmd *cobra.Command, f *termsFlags) {
	cmd.Flags().Var(&f.priority, "priority", "`N` from 0 to 15, 15 the highest, or one for each link: eth0=6,default=4")
	cmd.Flags().Var(&f.max, "egress-max", "at most a `RATE` of all links together, from 64Kbit to 100Gbit; none takes back what weir set gave")
	cmd.Flags().Var(oneOf(&f.via, "bpf", "net_prio"), "via", "the mechanism that carries it: `VIA` is bpf or net_prio")
	_ = cmd.RegisterFlagCompletionFunc("priority", c.completePriority)
	_ = cmd.RegisterFlagCompletionFunc("egress-max", completeRate)
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions([]string{"bpf", "net_prio"}, cobra.ShellCompDirectiveNoFileComp))
}

// check returns a *usageError for terms that net_prio can not carry.
func (f *termsFlags) check() error {
	if f.max.given && viaOf(f.via) == policy.ViaNetPrio {
		return &usageError{"net_prio carries priorities only: it cannot hold a limit", "leave --via out, or --egress-max"}
	}
	return nil
}

func (f *termsFlags) given() bool { return f.priority.given || f.max.given }

// terms are what was given.
func (f *termsFlags) terms() (t agent.Terms) {
	if f.priority.given {
		t.Priority = &f.priority.value
	}
	if f.max.given {
		t.Max = &f.max.value
	}
	return t
}

// String puts into words what was given: "priority 3, at most 10Mbit".
func (f *termsFlags) String() string {
	var words []string
	if f.priority.given {
		words = append(words, "priority "+f.priority.value.String())
	}
	switch {
	case f.max.value != 0:
		words = append(words, plan.Limit{Max: f.max.value}.String())
	case f.max.given:
		words = append(words, "no limit of its own")
	}
	return strings.Join(words, ", ")
}

// A maxFlag is the most that something may send in a second, or none.
type maxFlag struct {
	value policy.Rate // 0: no limit
	given bool
}

func (f *maxFlag) String() string { return "" }

func (f *maxFlag) Type() string { return "rate" }

func (f *maxFlag) Set(s string) (err error) {
	if f.value = 0; s != "none" {
		f.value, err = policy.ParseEgressMax(s)
	}
	f.given = err == nil
	return err
}
