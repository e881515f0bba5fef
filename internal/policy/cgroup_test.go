package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCgroupForms(t *testing.T) {
	for text, want := range map[string]Cgroup{
		"/":                                       {"", "/"},
		"/**":                                     {"", "/**"},
		"/batch/**":                               {"", "/batch/**"},
		"/system.slice/nginx.service":             {"", "/system.slice/nginx.service"},
		`/system.slice/foo\x2dbar.service`:        {"", `/system.slice/foo\x2dbar.service`},
		"/memory/batch":                           {"", "/memory/batch"},
		"memory:/batch":                           {"memory", "/batch"},
		"memory:/":                                {"memory", "/"},
		"cpu,cpuacct:/x":                          {"cpu", "/x"},
		"cpuacct,cpu:/x":                          {"cpu", "/x"},
		"systemd:/user.slice":                     {"name=systemd", "/user.slice"},
		"name=systemd:/user.slice":                {"name=systemd", "/user.slice"},
		"name=own:/x":                             {"name=own", "/x"},
		"/sys/fs/cgroup":                          {"", "/"},
		"/sys/fs/cgroup/":                         {"", "/"},
		"/sys/fs/cgroup/unified":                  {"", "/"},
		"/sys/fs/cgroup/batch":                    {"", "/batch"},
		"/sys/fs/cgroup/unified/batch":            {"", "/batch"},
		"/sys/fs/cgroup/unified/memory/x":         {"", "/memory/x"},
		"/sys/fs/cgroup/memory/batch/**":          {"memory", "/batch/**"},
		"/sys/fs/cgroup/memory":                   {"memory", "/"},
		"/sys/fs/cgroup/cpu,cpuacct/x":            {"cpu", "/x"},
		"/sys/fs/cgroup/net_cls,net_prio/x":       {"net_cls", "/x"},
		"/sys/fs/cgroup/systemd/x":                {"name=systemd", "/x"},
		"/sys/fs/cgroup/memory.slice/x":           {"", "/memory.slice/x"},
		"/sys/fs/cgroups/x":                       {"", "/sys/fs/cgroups/x"},
		"/odd:/name":                              {"", "/odd:/name"},
		"/sys/fs/cgroup/system.slice/foo.service": {"", "/system.slice/foo.service"},
	} {
		got, err := ParseCgroup(text)
		if err != nil || got != want {
			t.Errorf("ParseCgroup(%q) = %+v, %v", text, got, err)
		}
		if again, err := ParseCgroup(got.String()); err != nil || again != got {
			t.Errorf("%q prints as %q, which is %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{
		"", "batch", "./x", "/x/", "//", "/x//y", "/../x", "/.", "/a/**/b", "/**/b", "/a**", "/a/***", "io:/x", "memory:x",
		"memory,nope:/x", "name=:/x", "/a\nb", "/sys/fs/cgroup/x/", "/" + strings.Repeat("a", 256),
	} {
		if got, err := ParseCgroup(text); err == nil {
			t.Errorf("ParseCgroup(%q) = %+v", text, got)
		} else if _, ok := err.(*ValueError); !ok {
			t.Errorf("ParseCgroup(%q) fails with a %T", text, err)
		}
	}
}

func TestCgroupMatch(t *testing.T) {
	for pattern, paths := range map[string]struct{ yes, no []string }{
		"/":            {[]string{"/"}, []string{"/a", "", "a"}},
		"/**":          {[]string{"/", "/a", "/a/b"}, []string{"", "a"}},
		"/a":           {[]string{"/a", "/a/"}, []string{"/", "/a/b", "/ab", "/A", "a"}},
		"/a/**":        {[]string{"/a", "/a/b", "/a/b/c"}, []string{"/", "/ab", "/b/a"}},
		"/a/*":         {[]string{"/a/b", "/a/bcd"}, []string{"/a", "/a/b/c"}},
		"/a/*/c":       {[]string{"/a/b/c"}, []string{"/a/c", "/a/b/b/c", "/a/b/c/d"}},
		"/*/web-?":     {[]string{"/x/web-1", "/x/web-é"}, []string{"/x/web-", "/x/web-12", "/web-1"}},
		"/a*c":         {[]string{"/ac", "/abc", "/abbc", "/acbc"}, []string{"/a", "/ab", "/a/c"}},
		"/*a*b*":       {[]string{"/ab", "/xaxbx", "/aab"}, []string{"/ba", "/a/b"}},
		"/[a]":         {[]string{"/[a]"}, []string{"/a"}},
		`/a\x2db`:      {[]string{`/a\x2db`}, []string{"/a-b"}},
		"/**/n.scope":  {[]string{"/n.scope", "/a/n.scope", "/a/b/n.scope"}, []string{"/n.scope/a", "/an.scope", "/", ""}},
		"/**/n*.scope": {[]string{"/a/n1.scope", "/n.scope"}, []string{"/a/x.scope"}},
	} {
		for _, path := range paths.yes {
			if !(Cgroup{Pattern: pattern}).Match(path) {
				t.Errorf("%s does not match %q", pattern, path)
			}
		}
		for _, path := range paths.no {
			if (Cgroup{Pattern: pattern}).Match(path) {
				t.Errorf("%s matches %q", pattern, path)
			}
		}
	}
}

// The matcher that goes back to its last star must agree with one that tries
// everything.
func TestMatchComponentAgainstReference(t *testing.T) {
	var reference func(pattern, name []rune) bool
	reference = func(pattern, name []rune) bool {
		switch {
		case len(pattern) == 0:
			return len(name) == 0
		case pattern[0] == '*':
			return reference(pattern[1:], name) || len(name) > 0 && reference(pattern, name[1:])
		}
		return len(name) > 0 && (pattern[0] == '?' || pattern[0] == name[0]) && reference(pattern[1:], name[1:])
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.RuneFrom([]rune("ab*?é")), 0, 8, -1).Draw(t, "pattern")
		name := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 0, 8, -1).Draw(t, "name")
		if got, want := matchComponent(pattern, name), reference([]rune(pattern), []rune(name)); got != want {
			t.Fatalf("%q on %q: %v, want %v", pattern, name, got, want)
		}
	})
}

// A run of stars must not cost exponential time.
func TestMatchComponentIsQuick(t *testing.T) {
	if matchComponent(strings.Repeat("a*", 100)+"b", strings.Repeat("a", 255)) {
		t.Error("matched")
	}
}
