package plan

import (
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// mayLieBelow reports whether the limits of another workload may bind sockets of this one:
// whether it may match a cgroup further up than one that this one matches, on any host.
func mayLieBelow(w, other policy.Workload) bool {
	if w.Name == other.Name || other.Via != policy.ViaBPF {
		return false
	}
	return slices.ContainsFunc(other.Match, func(upper policy.Selector) bool {
		return nests(upper) && slices.ContainsFunc(w.Match, func(lower policy.Selector) bool {
			return lower.Kind == policy.KindPID || nests(lower) && mayBeAbove(upper.Cgroup.Pattern, lower.Cgroup.Pattern)
		})
	})
}

// nests reports whether a selector matches cgroups that know the way up.
func nests(s policy.Selector) bool {
	return (s.Kind == policy.KindCgroup || s.Kind == policy.KindUnit) && s.Cgroup.Controller == ""
}

// mayBeAbove reports whether a cgroup that one pattern matches may be further up than one
// that another matches. Where wildcards meet it says that it may.
func mayBeAbove(upper, lower string) bool {
	const anywhere, deep = "/**/", "/**"
	name, unit := strings.CutPrefix(upper, anywhere)
	if unit && !mayHaveBelow(name) {
		return strings.Contains(lower, "/"+name+"/")
	}
	if unit || strings.HasPrefix(lower, anywhere) {
		return true
	}
	lower, below := strings.CutSuffix(lower, deep)
	upper = strings.TrimSuffix(upper, deep)
	uppers, lowers := components(upper), components(lower)
	if len(uppers) > len(lowers) || len(uppers) == len(lowers) && !below {
		return below && mayMatch(uppers, lowers)
	}
	return mayMatch(uppers, lowers)
}

// mayHaveBelow reports whether other units may be below one of such a name: slices are
// what systemd nests, a user's manager has that user's, and a scope may be a container.
func mayHaveBelow(name string) bool {
	return strings.HasSuffix(name, ".slice") || strings.HasSuffix(name, ".scope") || strings.HasPrefix(name, "user@") || wild(name)
}

func wild(pattern string) bool { return strings.ContainsAny(pattern, "*?") }

func components(path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// mayMatch reports whether the first components of two patterns may be the same.
func mayMatch(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && !wild(a[i]) && !wild(b[i]) {
			return false
		}
	}
	return true
}
