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
	egress, ingress maxFlag[policy.Rate]
	byIngress       string // how the latter is held
	memory          memoryFlags
	vrf             vrfFlag
	via             string
}

// addTerms adds the flags that say what a process or a group gets.
func (c *cli) addTerms(cmd *cobra.Command, f *termsFlags) {
	cmd.Flags().Var(&f.priority, "priority", "`N` from 0 to 15, 15 the highest, or one for each link: eth0=6,default=4")
	f.egress.kind, f.ingress.kind = "rate", "rate"
	f.egress.parse, f.ingress.parse = policy.ParseEgressMax, policy.ParseIngressMax
	cmd.Flags().Var(&f.egress, "egress-max", "at most a `RATE` of all links together, from 64Kbit to 100Gbit; none takes back what weir set gave")
	cmd.Flags().Var(&f.ingress, "ingress-max", "at most a `RATE` to its sockets, by all devices but loopback; likewise")
	methods := []string{policy.MethodAuto.String(), string(policy.MethodPace), string(policy.MethodEDT), string(policy.MethodHTB)}
	cmd.Flags().Var(oneOf(&f.byIngress, methods...), "ingress-method", "how --ingress-max is held: `METHOD` is auto, pace, edt, which auto takes where links keep times of departure, or htb, which it takes where none does")
	c.addMemory(cmd, &f.memory)
	cmd.Flags().Var(&f.vrf, "vrf", "bind its new sockets to the VRF `NAME` of the policy or of the host; none takes back what weir set gave")
	cmd.Flags().Var(oneOf(&f.via, "bpf", "net_prio"), "via", "the mechanism that carries it: `VIA` is bpf or net_prio")
	_ = cmd.RegisterFlagCompletionFunc("priority", c.completePriority)
	_ = cmd.RegisterFlagCompletionFunc("egress-max", completeRate)
	_ = cmd.RegisterFlagCompletionFunc("ingress-max", completeRate)
	_ = cmd.RegisterFlagCompletionFunc("ingress-method", cobra.FixedCompletions(methods, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("vrf", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return append(c.vrfNames(), "none"), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions([]string{"bpf", "net_prio"}, cobra.ShellCompDirectiveNoFileComp))
}

// check returns a *usageError for terms that do not fit each other, or that net_prio can
// not carry.
func (f *termsFlags) check() error {
	if err := f.memory.check(); err != nil {
		return err
	}
	if f.method() != policy.MethodAuto && f.ingress.value == 0 {
		return &usageError{"--ingress-method of no limit", "add --ingress-max RATE"}
	}
	if viaOf(f.via) != policy.ViaNetPrio {
		return nil
	}
	for _, limit := range []struct {
		flag, what string
		given      bool
	}{{"--egress-max", "limit", f.egress.given}, {"--ingress-max", "limit", f.ingress.given}, {"--tcp-memory-max", "bound", f.memory.given()}} {
		if limit.given {
			return &usageError{"net_prio carries priorities only: it cannot hold a " + limit.what, "leave --via out, or " + limit.flag}
		}
	}
	if f.vrf.given {
		return &usageError{"net_prio carries priorities only: it cannot bind sockets to a VRF", "leave --via out, or --vrf"}
	}
	return nil
}

func (f *termsFlags) given() bool {
	return f.priority.given || f.egress.given || f.ingress.given || f.memory.given() || f.vrf.given
}

// promise reports whether what was given promises anything by itself.
func (f *termsFlags) promise() bool {
	return f.priority.given || f.egress.value != 0 || f.ingress.value != 0 || f.memory.max.value != 0 || f.vrf.value != ""
}

// method is how the limit of what is received is held.
func (f *termsFlags) method() policy.Method {
	if f.byIngress == policy.MethodAuto.String() {
		return policy.MethodAuto
	}
	return policy.Method(f.byIngress)
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
		t.MaxIngress, t.ByIngress = &f.ingress.value, f.method()
	}
	if f.memory.given() {
		bound := f.memory.bound()
		t.TCPMemory = &bound
	}
	if f.vrf.given {
		t.VRF = &f.vrf.value
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
		words = append(words, plan.PromiseIngress+" "+plan.Limit{Max: f.ingress.value, Answers: f.method() == policy.MethodEDT}.String())
	case f.ingress.given:
		words = append(words, "no ingress limit of its own")
	}
	switch {
	case f.memory.max.value != 0:
		words = append(words, plan.MemoryTerms(f.memory.bound()))
	case f.memory.given():
		words = append(words, "no bound on TCP memory of its own")
	}
	switch {
	case f.vrf.value != "":
		words = append(words, plan.BoundTerms(f.vrf.value))
	case f.vrf.given:
		words = append(words, "no VRF of its own")
	}
	return strings.Join(words, ", ")
}

// A maxFlag is the most that something may send or receive in a second, or hold, or none.
type maxFlag[T policy.Rate | policy.Size] struct {
	kind  string
	parse func(string) (T, error)
	value T // 0: no limit
	given bool
}

func (f *maxFlag[T]) String() string { return "" }

func (f *maxFlag[T]) Type() string { return f.kind }

func (f *maxFlag[T]) Set(s string) (err error) {
	if f.value = 0; s != "none" {
		f.value, err = f.parse(s)
	}
	f.given = err == nil
	return err
}

// A vrfFlag is the VRF that new sockets are bound to, or none.
type vrfFlag struct {
	value string // "": none
	given bool
}

func (f *vrfFlag) String() string { return "" }

func (f *vrfFlag) Type() string { return "name" }

func (f *vrfFlag) Set(s string) error {
	if f.value = ""; s != "none" {
		if err := policy.CheckLinkName(s); err != nil {
			return err
		}
		f.value = s
	}
	f.given = true
	return nil
}
