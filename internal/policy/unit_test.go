package policy

import "testing"

func TestUnit(t *testing.T) {
	for text, want := range map[string]string{
		"nginx":                       "/**/nginx.service",
		"nginx.service":               "/**/nginx.service",
		"getty@tty1":                  "/**/getty@tty1.service",
		"getty@*.service":             "/**/getty@*.service",
		"web-*":                       "/**/web-*",
		"session-3.scope":             "/**/session-3.scope",
		"user-1000.slice":             "/**/user-1000.slice",
		"docker.socket":               "/**/docker.socket",
		`foo\x2dbar.service`:          `/**/foo\x2dbar.service`,
		"dbus-org.freedesktop.login1": "/**/dbus-org.freedesktop.login1.service",
		"memory":                      "/**/_memory.service", // else an attribute of the controller
		"cpu.slice":                   "/**/_cpu.slice",
		"io.service":                  "/**/_io.service",
		"cpufreq.service":             "/**/cpufreq.service",
		"_own.service":                "/**/__own.service",
		"cgroup.service":              "/**/_cgroup.service",
		"tasks.service":               "/**/tasks.service",
		"bpf-firewall.service":        "/**/_bpf-firewall.service",
		"web-?":                       "/**/web-?.service",
	} {
		got, err := ParseUnit(text)
		if err != nil || got.Pattern != want || got.Controller != "" {
			t.Errorf("ParseUnit(%q) = %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".service", "a b", "/nginx", "nginx.servce", "apt.timer", "net.target", "a.device", "web-**", "ngïnx"} {
		if got, err := ParseUnit(text); err == nil {
			t.Errorf("ParseUnit(%q) = %+v", text, got)
		}
	}
}

func TestUnitMatches(t *testing.T) {
	c, err := ParseUnit("nginx")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/system.slice/nginx.service":                   true,
		"/user.slice/user-1.slice/user@1/nginx.service": true,
		"/nginx.service":                                true,
		"/system.slice/nginx.service/worker":            false, // inherits instead
		"/system.slice/nginx2.service":                  false,
	} {
		if c.Match(path) != want {
			t.Errorf("%s on %s: %v", c.Pattern, path, !want)
		}
	}
}
