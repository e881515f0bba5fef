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
	priority        priorityFlag
	egress, ingress maxFlag
	via             string
}

// addTerms adds the flags that say what a process or a group gets.
func (c *cli) addTerms(cmd *cobra.Command, f *termsFlags) {
	cmd.Flags().Var(&f.priority, "priority", "`N` from 0 to 15, 15 the highest, or one for each link: eth0=6,default=4")
	f.egress.parse, f.ingress.parse = policy.ParseEgressMax, policy.ParseIngressMax
	cmd.Flags().Var(&f.egress, "egress-max", "at most a `RATE` of all links together, from 64Kbit to 100Gbit; none takes back what weir set gave")
	cmd.Flags().Var(&f.ingress, "ingress-max", "at most a `RATE` to its sockets, by all devices but loopback; likewise")
	cmd.Flags().Var(oneOf(&f.via, "bpf", "net_prio"), "via", "the mechanism that carries it: `VIA` is bpf or net_prio")
	_ = cmd.RegisterFlagCompletionFunc("priority", c.completePriority)
	_ = cmd.RegisterFlagCompletionFunc("egress-max", completeRate)
	_ = cmd.RegisterFlagCompletionFunc("ingress-max", completeRate)
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions([]string{"bpf", "net_prio"}, cobra.ShellCompDirectiveNoFileComp))
}

// check returns a *usageError for terms that net_prio can not carry.
func (f *termsFlags) check() error {
	if viaOf(f.via) != policy.ViaNetPrio {
		return nil
	}
	for _, limit := range []struct {
		flag  string
		given bool
	}{{"--egress-max", f.egress.given}, {"--ingress-max", f.ingress.given}} {
		if limit.given {
			return &usageError{"net_prio carries priorities only: it cannot hold a limit", "leave --via out, or " + limit.flag}
		}
	}
	return nil
}

func (f *termsFlags) given() bool { return f.priority.given || f.egress.given || f.ingress.given }

// promise reports whether what was given promises anything by itself.
func (f *termsFlags) promise() bool {
	return f.priority.given || f.egress.value != 0 || f.ingress.value != 0
}

// terms are what was given.
func (f *termsFlags) terms() (t agent.Terms) {
	if f.priority.given {
		t.Priority = &f.priority.value
	}
	if f.egress.given {
		t.Max = &f.egress.value
	}
	if f.ingress.given {
		t.MaxIngress = &f.ingress.value
	}
	return t
}

// String puts into words what was given: "priority 3, at most 10Mbit, ingress at most
// 20Mbit".
func (f *termsFlags) String() string {
	var words []string
	if f.priority.given {
		words = append(words, "priority "+f.priority.value.String())
	}
	switch {
	case f.egress.value != 0:
		words = append(words, plan.Limit{Max: f.egress.value}.String())
	case f.egress.given:
		words = append(words, "no egress limit of its own")
	}
	switch {
	case f.ingress.value != 0:
		words = append(words, plan.PromiseIngress+" "+plan.Limit{Max: f.ingress.value}.String())
	case f.ingress.given:
		words = append(words, "no ingress limit of its own")
	}
	return strings.Join(words, ", ")
}

// A maxFlag is the most that something may send or receive in a second, or none.
type maxFlag struct {
	parse func(string) (policy.Rate, error)
	value policy.Rate // 0: no limit
	given bool
}

func (f *maxFlag) String() string { return "" }

func (f *maxFlag) Type() string { return "rate" }

func (f *maxFlag) Set(s string) (err error) {
	if f.value = 0; s != "none" {
		f.value, err = f.parse(s)
	}
	f.given = err == nil
	return err
}
