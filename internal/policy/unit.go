package policy

import (
	"slices"
	"strings"
)

// ParseUnit reads the name of a systemd unit, globs with * and ? included, and
// returns the pattern "/**/NAME" that finds its cgroup at any depth: below its
// slice, in a user's manager, in a container that runs its own systemd. A name
// without a type means a service. The error is a *ValueError.
func ParseUnit(s string) (Cgroup, error) {
	name, err := unitName(s)
	if err != nil {
		return Cgroup{}, err
	}
	return Cgroup{Pattern: "/**/" + escapeUnit(name)}, nil
}

// unitName checks a unit's name and completes its type.
func unitName(s string) (string, error) {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@*?"
	if strings.ContainsRune(s, '/') {
		return "", &ValueError{"unit " + quote(s) + " is a path", "name the unit alone, or select by cgroup"}
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(allowed, r) }); i >= 0 {
		return "", &ValueError{"unit " + quote(s) + " has characters that no unit name has", "systemd-escape prints the name of any text"}
	}
	if s == "" || len(s) > 247 {
		return "", &ValueError{"unit " + quote(s) + " must have 1 to 247 characters", ""}
	}
	if strings.Contains(s, "**") {
		return "", &ValueError{"unit " + quote(s) + " has a **", "a single * stands for any characters"}
	}
	dot := strings.LastIndexByte(s, '.')
	suffix := s[dot+1:]
	switch {
	case dot < 0 || strings.ContainsAny(suffix, "*?"):
		if dot < 0 && s[len(s)-1] != '*' {
			return s + ".service", nil
		}
		return s, nil
	case dot == 0:
		return "", &ValueError{"unit " + quote(s) + " has no name", "as in nginx.service"}
	}
	types := []string{"service", "scope", "slice", "socket", "mount", "swap"}
	switch {
	case slices.Contains(types, suffix):
		return s, nil
	case slices.Contains([]string{"target", "timer", "path", "automount", "device"}, suffix):
		return "", &ValueError{"unit " + quote(s) + " has no processes: a " + suffix + " only starts others", "name the service that it starts"}
	}
	if near := Suggest(suffix, types); near != "" {
		return "", &ValueError{"unit " + quote(s) + " has an unknown type", "did you mean " + quote(s[:dot+1]+near) + "?"}
	}
	return s + ".service", nil // as systemctl does: dbus-org.freedesktop.login1
}

// escapeUnit is systemd's cg_escape: names that could be taken for a file of the
// cgroup file system ("memory.service" looks like an attribute of the memory
// controller) get an underscore in front.
func escapeUnit(name string) string {
	switch {
	case name[0] == '_', name[0] == '.', strings.HasPrefix(name, "cgroup."),
		name == "notify_on_release", name == "release_agent", name == "tasks":
		return "_" + name
	}
	first, _, _ := strings.Cut(name, ".")
	switch first {
	case "cpu", "cpuacct", "cpuset", "io", "blkio", "memory", "devices", "pids",
		"bpf-firewall", "bpf-devices", "bpf-foreign", "bpf-socket-bind", "bpf-restrict-network-interfaces":
		return "_" + name
	}
	return name
}
