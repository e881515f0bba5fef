package plan

import (
	"testing"

	"github.com/weir-net/weir/internal/policy"
)

func TestTermsOfContract(t *testing.T) {
	none := policy.Priority{Default: policy.Unset}
	for want, c := range map[string]policy.Contract{
		"priority 3":                  {Priority: policy.Priority{Default: 3}},
		"at most 10Mbit":              {Priority: none, Egress: policy.Egress{Limit: policy.Limit{Max: 1e7}}},
		"priority 3, at most 1.5Gbit": {Priority: policy.Priority{Default: 3}, Egress: policy.Egress{Limit: policy.Limit{Max: 15e8}}},
		"priority {eth0: 4}":          {Priority: policy.Priority{Default: policy.Unset, PerLink: map[string]policy.Level{"eth0": 4}}},
		"not limited":                 {Priority: none},
		"eth1 at most 10Mbit":         {Priority: none, Egress: policy.Egress{PerLink: map[string]policy.Limit{"eth1": {Max: 1e7}}}},
		"priority 3, at most 50Mbit, eth0 at most 20Mbit, eth1 at most 10Mbit": {Priority: policy.Priority{Default: 3},
			Egress: policy.Egress{Limit: policy.Limit{Max: 5e7}, PerLink: map[string]policy.Limit{"eth1": {Max: 1e7}, "eth0": {Max: 2e7}}}},
		"at most 10Mbit (64KiB at once)": {Priority: none, Egress: policy.Egress{Limit: policy.Limit{Max: 1e7, Burst: 64 << 10}}},
		"ingress at most 20Mbit":         {Priority: none, Ingress: policy.Bandwidth{Limit: policy.Limit{Max: 2e7}}},
		"priority 3, at most 50Mbit, eth0 at most 20Mbit, ingress at most 10Mbit": {Priority: policy.Priority{Default: 3},
			Egress: policy.Egress{Limit: policy.Limit{Max: 5e7}, PerLink: map[string]policy.Limit{"eth0": {Max: 2e7}}}, Ingress: policy.Bandwidth{Limit: policy.Limit{Max: 1e7}}},
	} {
		if got := Terms(c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
