package plan

import (
	"cmp"

	"github.com/weir-net/weir/internal/policy"
)

// OwnRungs are the rungs of a link's own limits: PromiseEgress or PromiseIngress ->
// rung.
type OwnRungs map[string]LimitRung

// ownLimits are a link's own limits, by the promise that each is.
func ownLimits(l policy.Link) map[string]policy.Limit {
	all := map[string]policy.Limit{}
	for promise, limit := range map[string]policy.Limit{PromiseEgress: l.Egress.Limit, PromiseIngress: l.Ingress.Limit} {
		if limit != (policy.Limit{}) {
			all[promise] = limit
		}
	}
	return all
}

// ownRungs chooses the rung of each of a link's own limits. One that finds none is
// taken to be on the one that the policy names, or the best.
func ownRungs(l policy.Link, f Facts) OwnRungs {
	all := OwnRungs{}
	for promise, limit := range ownLimits(l) {
		rung, why := ChooseOwn(promise, limit, f)
		if why != "" {
			rung.Method = cmp.Or(limit.Method, policy.MethodPace)
		}
		all[promise] = rung
	}
	return all
}

// paced is the link without the limits that filters of tc or an ifb hold.
func (r OwnRungs) paced(l policy.Link) policy.Link {
	if r[PromiseEgress].Method != policy.MethodPace {
		l.Egress.Limit = policy.Limit{}
	}
	if r[PromiseIngress].Method != policy.MethodPace {
		l.Ingress.Limit = policy.Limit{}
	}
	return l
}
