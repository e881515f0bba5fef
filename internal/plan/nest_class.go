package plan

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/weir-net/weir/internal/policy"
)

// outsideClasses returns the limits that classes of htb hold, and that do not hold for
// all that is below their cgroups of this host: what another workload claims there is in
// another class. A limit shall mean the same on every rung, so these are refused.
func (w *Want) outsideClasses(held map[string]holding) (all []Unbound) {
	if !w.LimitRungs.anyClass() {
		return nil
	}
	told := map[string]bool{}
	for _, at := range slices.Sorted(maps.Keys(held)) {
		own := held[at]
		for up, last := path.Dir(at), at; up != last; up, last = path.Dir(up), up {
			outer, ok := held[up]
			if ok && outer.workload != own.workload && w.LimitRungs.inClass(outer.workload.Name) && !told[outer.workload.Name] {
				told[outer.workload.Name] = true
				all = append(all, outsideClass(outer.workload, own, at))
			}
		}
	}
	return all
}

func outsideClass(of *policy.Workload, nearer holding, at string) Unbound {
	u := Unbound{Workload: of.Name, Class: true}
	if u.Span = nearer.at; u.Span == (policy.Span{}) {
		u.Span = of.Contract.Egress.Span
	}
	u.Message = fmt.Sprintf("cgroup %s: the limit of workload %q does not hold there: htb holds it in a class of one workload, and %q has that cgroup",
		at, of.Name, nearer.workload.Name)
	u.Help = "give each of them a limit in a cgroup of its own, or leave the outer one out; method: pace binds all, where the kernel can"
	return u
}

// inClass reports whether a class of htb holds a limit of a workload's.
func (r LimitRungs) inClass(workload string) bool {
	for _, rung := range r[workload] {
		if rung.Method == policy.MethodHTB {
			return true
		}
	}
	return false
}

func (r LimitRungs) anyClass() bool {
	for workload := range r {
		if r.inClass(workload) {
			return true
		}
	}
	return false
}
