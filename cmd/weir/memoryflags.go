package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/policy"
)

// memoryFlags say what the TCP sockets of a process or a group may hold. They are one
// bound: what of it is not named is as in a policy.
type memoryFlags struct {
	max      maxFlag[policy.Size]
	soft     string
	softSize policy.Size // of soft, once it is checked
	whenFull string
}

// addMemory adds the flags that bound what TCP sockets hold.
func (c *cli) addMemory(cmd *cobra.Command, f *memoryFlags) {
	f.max.kind, f.max.parse = "size", policy.ParseTCPMemoryMax
	cmd.Flags().Var(&f.max, "tcp-memory-max", "what its TCP sockets may hold together: a `SIZE` from 256KiB to 1024GiB; none takes back what weir set gave")
	cmd.Flags().StringVar(&f.soft, "tcp-memory-soft", "", "above a `SIZE` they stop growing; left out it is half of the most")
	cmd.Flags().Var(oneOf(&f.whenFull, policy.WhenFullSqueeze.String(), policy.WhenFullRefuse.String()), "tcp-memory-when-full",
		"what a new connection meets where too little is left: `WHAT` is squeeze or refuse")
	_ = cmd.RegisterFlagCompletionFunc("tcp-memory-max", completeSize)
	_ = cmd.RegisterFlagCompletionFunc("tcp-memory-soft", completeSize)
	_ = cmd.RegisterFlagCompletionFunc("tcp-memory-when-full",
		cobra.FixedCompletions([]string{policy.WhenFullSqueeze.String(), policy.WhenFullRefuse.String()}, cobra.ShellCompDirectiveNoFileComp))
}

// given reports whether a bound was given, or the one before is to be taken back.
func (f *memoryFlags) given() bool { return f.max.given }

// check returns a *usageError where they are no bound.
func (f *memoryFlags) check() error {
	if f.max.value == 0 {
		for _, flag := range []struct {
			name  string
			given bool
		}{{"--tcp-memory-soft", f.soft != ""}, {"--tcp-memory-when-full", f.whenFull != policy.WhenFullSqueeze.String()}} {
			if flag.given {
				return &usageError{flag.name + " of no bound", "add --tcp-memory-max SIZE"}
			}
		}
		return nil
	}
	if f.softSize = f.max.value / 2; f.soft == "" {
		return nil
	}
	var err error
	if f.softSize, err = policy.ParseTCPMemorySoft(f.soft, f.max.value); err != nil {
		return &usageError{fmt.Sprintf("--tcp-memory-soft %q: %v", f.soft, err), ""}
	}
	return nil
}

// bound is what was given, once it is checked; none for the zero value.
func (f *memoryFlags) bound() (m policy.TCPMemory) {
	if f.max.value == 0 {
		return m
	}
	m = policy.TCPMemory{Soft: f.softSize, Max: f.max.value}
	if f.whenFull == policy.WhenFullRefuse.String() {
		m.WhenFull = policy.WhenFullRefuse
	}
	return m
}
