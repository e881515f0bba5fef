package policy

import (
	"net/netip"
	"strconv"
	"strings"
)

// String names the kind as a policy does.
func (k Kind) String() string {
	switch k {
	case KindPID:
		return "pid"
	case KindCgroup:
		return "cgroup"
	case KindUnit:
		return "unit"
	case KindUser:
		return "user"
	case KindExe:
		return "exe"
	case KindFlow:
		return "flow"
	}
	return "kind " + strconv.Itoa(int(k))
}

// String writes the selector as an item of a match list, without the braces.
func (s Selector) String() string {
	switch s.Kind {
	case KindPID:
		return "pid: " + strconv.FormatUint(uint64(s.PID), 10)
	case KindCgroup:
		return "cgroup: " + s.Cgroup.String()
	case KindUnit:
		return "unit: " + strings.TrimPrefix(s.Cgroup.Pattern, "/**/")
	case KindUser:
		return "user: " + s.User
	case KindExe:
		return "exe: " + s.Exe
	}
	return s.Flow.String()
}

// AnyFlow is the flow that matches every packet: set from here what matters.
func AnyFlow() Flow { return Flow{Protocol: -1, DSCP: -1} }

// String writes the flow as an item of a match list, without the braces; "any"
// if nothing is set.
func (f Flow) String() string {
	var keys []string
	if len(f.Ports) == 1 {
		keys = append(keys, "port: "+f.Ports[0].String())
	} else if len(f.Ports) > 1 {
		ports := make([]string, len(f.Ports))
		for i, r := range f.Ports {
			ports[i] = r.String()
		}
		keys = append(keys, "port: ["+strings.Join(ports, ", ")+"]")
	}
	if f.Protocol >= 0 {
		keys = append(keys, "protocol: "+ProtocolName(f.Protocol))
	}
	if f.Prefix != (netip.Prefix{}) {
		keys = append(keys, "cidr: "+formatPrefix(f.Prefix))
	}
	if f.DSCP >= 0 {
		keys = append(keys, "dscp: "+DSCPName(f.DSCP))
	}
	if keys == nil {
		return "any"
	}
	return strings.Join(keys, ", ")
}

// checkExe refuses what cannot be the path of an executable. The error is a
// *ValueError.
func checkExe(path string) error {
	fail := func(message, help string) error { return &ValueError{"exe " + quote(path) + " " + message, help} }
	switch {
	case !strings.HasPrefix(path, "/"):
		return fail("is not an absolute path", "as in /usr/bin/rsync")
	case strings.ContainsAny(path, "*?["):
		return fail("has a wildcard", "exe names one file; select a group of programs by unit, cgroup or user")
	case strings.HasSuffix(path, "/"):
		return fail("is a directory", "name the file")
	case len(path) > 4095:
		return fail("is longer than a path can be", "")
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return fail("is not a plain path", "no //, no . and no ..")
		}
	}
	return nil
}

// checkUser refuses what can be neither a user's name nor a decimal uid. Whether
// the user exists is for the host to know. The error is a *ValueError.
func checkUser(user string) error {
	if isNumber(user) {
		const noUser = 1<<32 - 1 // (uid_t)-1 means "unchanged" to the kernel, never a user
		_, err := number("user", user, 0, noUser-1)
		return err
	}
	// What useradd(8) forbids, no more: names from LDAP hold dots, @ and \.
	bad := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(":,/*?", r) }
	if user == "" || len(user) > 256 || strings.ContainsFunc(user, bad) {
		return &ValueError{"user " + quote(user) + " is not a user's name or number", ""}
	}
	return nil
}
