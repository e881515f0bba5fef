package policy

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// v1Controllers are the controllers of cgroup v1, and the names under which
// distributions mount their hierarchies.
var v1Controllers = [...]string{
	"blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb", "memory",
	"misc", "net_cls", "net_prio", "perf_event", "pids", "rdma", "systemd",
}

// cgroupMount is where every distribution mounts its hierarchies. A path from
// there is accepted as people paste it; other mounts are for the host to know.
const cgroupMount = "/sys/fs/cgroup"

// ParseCgroup reads a cgroup selector in any of the forms that people have at
// hand:
//
//	/batch/**                       a glob over paths of the v2 hierarchy
//	memory:/batch                   the same over a v1 hierarchy, by controller
//	name=systemd:/user.slice        … or by the hierarchy's name
//	/sys/fs/cgroup/batch            as seen in the file system; so is
//	/sys/fs/cgroup/unified/batch    the v2 hierarchy of a hybrid host, and
//	/sys/fs/cgroup/memory/batch     a v1 hierarchy
//
// The error is a *ValueError.
func ParseCgroup(s string) (Cgroup, error) {
	c := Cgroup{Pattern: s}
	if before, after, ok := strings.Cut(s, ":/"); ok && !strings.Contains(before, "/") {
		controller, known := v1Hierarchy(before)
		if !known {
			return Cgroup{}, &ValueError{"cgroup " + quote(s) + " names an unknown v1 controller " + quote(before), DidYouMean(before, v1Controllers[:], "as in memory:/batch or name=systemd:/batch")}
		}
		c = Cgroup{Controller: controller, Pattern: "/" + after}
	} else if rest, ok := below(s, cgroupMount); ok {
		c.Pattern = rest
		first, _, _ := strings.Cut(rest[1:], "/")
		if unified, ok := below(rest, "/unified"); ok {
			c.Pattern = unified
		} else if controller, known := v1Hierarchy(first); known {
			c.Controller = controller
			c.Pattern, _ = below(rest, "/"+first)
		}
	}
	if message, help := patternFault(c.Pattern); message != "" {
		return Cgroup{}, &ValueError{"cgroup " + quote(s) + " " + message, help}
	}
	return c, nil
}

// v1Hierarchy turns what names a v1 hierarchy (a controller, several that are
// mounted together, or name=X) into the form of Cgroup.Controller.
func v1Hierarchy(s string) (controller string, known bool) {
	if name, ok := strings.CutPrefix(s, "name="); ok {
		return s, name != "" && !strings.ContainsAny(name, ",=")
	}
	if s == "systemd" {
		return "name=systemd", true
	}
	controllers := strings.Split(s, ",")
	for _, one := range controllers {
		if one == "systemd" || !slices.Contains(v1Controllers[:], one) {
			return "", false
		}
	}
	return slices.Min(controllers), true
}

// below returns what of an absolute path is below a directory, itself "/".
func below(path, dir string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, dir)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	if rest == "" {
		return "/", true
	}
	return rest, true
}

// patternFault says what is wrong with an absolute glob, in the words that
// follow its name.
func patternFault(pattern string) (message, help string) {
	if !strings.HasPrefix(pattern, "/") {
		return "is not absolute", "write it as in /proc/PID/cgroup: /" + clip(strings.TrimLeft(pattern, "./"))
	}
	if pattern == "/" {
		return "", ""
	}
	parts := strings.Split(pattern[1:], "/")
	for i, part := range parts {
		switch {
		case part == "" && i == len(parts)-1:
			return "ends with a slash", "leave the last slash out; /** at the end stands for the cgroup and everything below it"
		case part == "" || part == "." || part == "..":
			return "is not a plain path", "no //, no . and no .."
		case part == "**" && i < len(parts)-1:
			return "has a ** that is not its last component", "* stands for one component here"
		case part != "**" && strings.Contains(part, "**"):
			return "has a ** inside a component", "a component is **, or a name with single * and ?"
		case len(part) > 255:
			return "has a component of more than 255 bytes", ""
		case strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return "has a control character in it", ""
		}
	}
	return "", ""
}

// Match reports whether a cgroup, by its absolute path below the root of the
// selector's hierarchy as in /proc/PID/cgroup, is itself one that the pattern
// names. That the cgroups below it inherit is for the caller to know.
func (c Cgroup) Match(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	pattern, ok := strings.CutPrefix(c.Pattern, "/**/")
	if ok { // the form of units: any depth, then the name
		return matchComponent(pattern, path[strings.LastIndexByte(path, '/')+1:])
	}
	want, got := c.Pattern, strings.TrimSuffix(path, "/")
	if want == "/" {
		return got == ""
	}
	for {
		if want == "/**" {
			return true
		}
		if want == "" || got == "" {
			return want == got
		}
		var name, glob string
		glob, want = component(want[1:])
		name, got = component(got[1:])
		if !matchComponent(glob, name) {
			return false
		}
	}
}

// Wild reports whether the pattern has a wildcard: it may name several cgroups.
func (c Cgroup) Wild() bool { return strings.ContainsAny(c.Pattern, "*?") }

// component parts a path without its leading slash after its first component.
func component(path string) (first, rest string) {
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// matchComponent matches one component: * is any run of characters, ? is one.
// It goes back to the last star only, so it is quadratic at worst.
func matchComponent(pattern, name string) bool {
	p, n, star, resume := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, n
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			_, size := utf8.DecodeRuneInString(name[n:])
			n += size
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0:
			_, size := utf8.DecodeRuneInString(name[resume:])
			resume += size
			p, n = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// String writes the selector as ParseCgroup reads it; a unit's "/**/NAME" is
// the one form that it does not read.
func (c Cgroup) String() string {
	if c.Controller == "" {
		if _, ok := below(c.Pattern, cgroupMount); ok { // a cgroup that is really called so
			return cgroupMount + c.Pattern
		}
		return c.Pattern
	}
	return c.Controller + ":" + c.Pattern
}
