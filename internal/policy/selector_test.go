package policy

import (
	"strings"
	"testing"
)

func TestCheckExe(t *testing.T) {
	for _, good := range []string{"/bin/x", "/a", "/usr/bin/with space", "/usr/lib/a..b"} {
		if err := checkExe(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "rsync", "/", "/usr/bin/", "/usr//bin", "/usr/../bin", "/.", "/usr/bin/*", "/" + strings.Repeat("a", 5000)} {
		if checkExe(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestCheckUser(t *testing.T) {
	for _, good := range []string{"root", "0", "4294967294", "www-data", "first.last@example.org", `DOMAIN\user`, "_apt", "machine$"} {
		if err := checkUser(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "a b", "a:b", "a,b", "a/b", "*", "-1", "4294967295", "007", "1e3", "a\n"} {
		if checkUser(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// What a selector prints is an item that reads back as the same selector.
func TestSelectorString(t *testing.T) {
	items := []string{
		"pid: 7", "cgroup: /batch/**", "cgroup: memory:/batch", "cgroup: name=systemd:/x", "unit: nginx.service",
		"user: root", "exe: /bin/x",
		"port: 22", "port: 22, protocol: tcp", "port: [80, 443, 8000-8099]", "protocol: 253", "cidr: 10.0.0.0/8", "cidr: 192.0.2.1",
		"cidr: 2001:db8::/32, dscp: af41", "protocol: icmpv6", "dscp: 13", "port: 5060-5061, protocol: udp, cidr: 192.0.2.0/24, dscp: ef",
	}
	parse := func(item string) Selector {
		src := "version: 1\nlinks: {eth0: {}}\nworkloads: {w: {match: [{" + item + "}], priority: 1}}\n"
		p, err := Parse("x", []byte(src))
		if err != nil {
			t.Fatalf("%s: %v", item, err)
		}
		return p.Workloads[0].Match[0]
	}
	for _, item := range items {
		first := parse(item)
		if first.String() != item {
			t.Errorf("%q prints as %q", item, first)
		}
	}
	if got := AnyFlow().String(); got != "any" {
		t.Errorf("the flow of everything prints as %q", got)
	}
}
