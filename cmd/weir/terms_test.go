package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-net/weir/internal/policy"
)

// What is given is said, and passed on; what is not is left as it was.
func TestTermsFlags(t *testing.T) {
	for _, c := range []struct {
		args    []string
		said    string
		promise bool // of itself
	}{
		{nil, "", false},
		{[]string{"--priority", "3"}, "priority 3", true},
		{[]string{"--egress-max", "10Mbit"}, "at most 10Mbit", true},
		{[]string{"--ingress-max", "20Mbit"}, "ingress at most 20Mbit", true},
		{[]string{"--ingress-max", "20Mbit", "--ingress-method", "edt"}, "ingress at most 20Mbit by edt", true},
		{[]string{"--egress-max", "none"}, "no egress limit of its own", false},
		{[]string{"--ingress-max", "none"}, "no ingress limit of its own", false},
		{[]string{"--ingress-max", "20Mbit", "--egress-max", "none", "--priority", "0"},
			"priority 0, no egress limit of its own, ingress at most 20Mbit", true},
		{[]string{"--ingress-max", "20Mbit", "--ingress-max", "none"}, "no ingress limit of its own", false},
	} {
		var f termsFlags
		cmd := &cobra.Command{}
		(&cli{}).addTerms(cmd, &f)
		if err := cmd.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		if f.String() != c.said || f.promise() != c.promise || f.given() != (c.said != "") {
			t.Errorf("%q: %q, promises %v, given %v", c.args, f.String(), f.promise(), f.given())
		}
		terms := f.terms()
		passed := map[string]bool{"priority": terms.Priority != nil, "egress-max": terms.Max != nil, "ingress-max": terms.MaxIngress != nil,
			"ingress-method": terms.ByIngress != policy.MethodAuto}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if passed[flag.Name] != flag.Changed {
				t.Errorf("%q: %s is passed on: %v", c.args, flag.Name, passed[flag.Name])
			}
		})
		if terms.Max != nil && *terms.Max != f.egress.value || terms.MaxIngress != nil && *terms.MaxIngress != f.ingress.value {
			t.Errorf("%q: %+v", c.args, terms)
		}
	}
}
