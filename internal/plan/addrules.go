package plan

import (
	"strconv"

	"github.com/weir-net/weir/internal/policy"
)

// addRules files every selector in the table that its packets are looked up in.
func (w *Want) addRules(p *policy.Policy, f Facts) []policy.Diagnostic {
	r := Rules{Users: map[uint32]ContractID{}, Exes: map[ExeID]ContractID{}, Controller1: Controller1(p)}
	cgroups := newCgroupClaims()
	users, exes := taken[uint32]{}, taken[ExeID]{}
	var flows []flowRule
	var errs []policy.Diagnostic
	for _, wl := range p.Workloads {
		if wl.Via != policy.ViaBPF {
			continue
		}
		id := w.Contracts[wl.Name].ID
		for _, s := range wl.Match {
			switch s.Kind {
			case policy.KindPID:
				w.PIDs[s.PID] = wl.Name
			case policy.KindCgroup, policy.KindUnit:
				if !Followed(s.Cgroup) {
					w.Unfollowed = append(w.Unfollowed, s)
				}
				cgroups.add(s.Cgroup, f.Cgroups[s.Cgroup], id)
			case policy.KindUser:
				errs = users.take(r.Users, f.uid(s.User), id, s, "user", errs)
			case policy.KindExe:
				errs = exes.take(r.Exes, f.Exes[s.Exe], id, s, "file", errs)
			case policy.KindFlow:
				flows = append(flows, expand(s, id)...)
			}
		}
	}
	r.Cgroups, r.Cgroups1 = cgroups.v2.contracts(), cgroups.v1.inherit(f.Parents1)
	r.Births = Births{
		Paths: cgroups.paths.contracts(), Prefixes: cgroups.prefixes.contracts(), Names: cgroups.names.contracts(),
	}
	var more []policy.Diagnostic
	r.Tuples, r.Flows, more = compileFlows(flows)
	w.Rules = r
	return append(errs, more...)
}

// uid returns a user's number; Check has seen to it that there is one.
func (f Facts) uid(name string) uint32 {
	if uid, ok := f.Users[name]; ok {
		return uid
	}
	n, _ := strconv.ParseUint(name, 10, 32)
	return uint32(n)
}

// taken remembers where something was claimed first.
type taken[K comparable] map[K]policy.Selector

// take files a claim, or reports the second one on what two names stand for:
// a user and its number, a file and a link to it.
func (t taken[K]) take(table map[K]ContractID, k K, id ContractID, s policy.Selector, what string, errs []policy.Diagnostic) []policy.Diagnostic {
	first, ok := t[k]
	if ok && table[k] != id {
		return append(errs, policy.Diagnostic{
			Span:    s.Span,
			Message: "two workloads claim the same " + what + ": " + s.String() + " is " + first.String(),
			Related: []policy.Related{{Span: first.Span, Note: "claimed here first"}},
			Help:    "leave one of the two out",
		})
	}
	t[k], table[k] = s, id
	return errs
}
