package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

// What terms do not name stays as it was given, and what is left of nothing is nothing.
func TestTermsOfSet(t *testing.T) {
	rate := func(r policy.Rate) *policy.Rate { return &r }
	level := func(l policy.Level) policy.Priority { return policy.Priority{Default: l} }
	four := level(4)
	for name, c := range map[string]struct {
		from, want *state.Set // from nil: a new one; want nil: nothing
		terms      Terms
		limits     bool
	}{
		"nothing, of nothing":  {terms: Terms{}},
		"no limit, of nothing": {terms: Terms{Max: rate(0), MaxIngress: rate(0)}},
		"a priority":           {terms: Terms{Priority: &four}, want: &state.Set{Priority: four}},
		"a limit out":          {terms: Terms{Max: rate(1e6)}, want: &state.Set{Priority: level(policy.Unset), Max: 1e6}, limits: true},
		"a limit in":           {terms: Terms{MaxIngress: rate(2e6)}, want: &state.Set{Priority: level(policy.Unset), MaxIngress: 2e6}, limits: true},
		"the other limit beside": {from: &state.Set{Priority: four, Max: 1e6}, terms: Terms{MaxIngress: rate(2e6)},
			want: &state.Set{Priority: four, Max: 1e6, MaxIngress: 2e6}, limits: true},
		"one limit less": {from: &state.Set{Priority: level(policy.Unset), Max: 1e6, MaxIngress: 2e6}, terms: Terms{Max: rate(0)},
			want: &state.Set{Priority: level(policy.Unset), MaxIngress: 2e6}},
		"the last limit less": {from: &state.Set{Priority: level(policy.Unset), MaxIngress: 2e6}, terms: Terms{MaxIngress: rate(0)}},
		"a priority is left":  {from: &state.Set{Priority: four, MaxIngress: 2e6}, terms: Terms{MaxIngress: rate(0)}, want: &state.Set{Priority: four}},
	} {
		from := state.Set{}
		if c.from != nil {
			from = *c.from
		}
		got, nothing := c.terms.of(from, c.from != nil)
		if nothing != (c.want == nil) {
			t.Errorf("%s: nothing is left: %v", name, nothing)
		}
		if c.want != nil {
			if diff := cmp.Diff(*c.want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if got := c.terms.limits(); got != c.limits {
			t.Errorf("%s: gives a limit: %v", name, got)
		}
	}
}
