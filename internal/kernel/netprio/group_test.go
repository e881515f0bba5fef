package netprio

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/policy"
)

func TestParseMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOf(rapid.StringMatching(`[a-z0-9.@:-]{1,15}`), rapid.Uint32()).Draw(t, "map")
		var text strings.Builder
		for link, priority := range want {
			fmt.Fprintf(&text, "%s %d\n", link, priority)
		}
		if got, err := parseMap(text.String()); err != nil || !maps.Equal(got, want) {
			t.Fatalf("parseMap(%q) = %v, %v; want %v", text.String(), got, err, want)
		}
	})
	for _, bad := range []string{"eth0\n", " 3\n", "eth0 x\n", "eth0 -1\n", "\n"} {
		if got, err := parseMap(bad); err == nil {
			t.Errorf("parseMap(%q) = %v, want an error", bad, got)
		}
	}
}

func TestIsGroup(t *testing.T) {
	for level := range policy.Level(policy.Levels) {
		if !isGroup(LevelGroup(level)) {
			t.Errorf("%s is not taken for a group", LevelGroup(level))
		}
	}
	if !isGroup(NamedGroup("x")) {
		t.Error("a named group is not taken for one")
	}
	for _, name := range []string{"", "prio-", "prio-16", "prio-03", "prio-+3", "prio--1", "weir-", "weir", "other"} {
		if isGroup(name) {
			t.Errorf("%q is taken for a group", name)
		}
	}
}

func TestEntry(t *testing.T) {
	p := policy.Priority{Default: policy.Unset, PerLink: map[string]policy.Level{"eth1": 9}}
	if entry(p, "eth1") != 9 || entry(p, "eth0") != 0 {
		t.Errorf("entries %d and %d, want 9, and 0 for what is not set", entry(p, "eth1"), entry(p, "eth0"))
	}
}

func TestParseProcess(t *testing.T) {
	const stat = "730 (a) (b) S 12 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1000 1\n"
	want := process{parent: 12, start: 4711, group: "/a:b"}
	if got, err := parseProcess(stat, "3:cpu:/x\n2:net_cls,net_prio:/a:b\n0::/y\n"); err != nil || got != want {
		t.Errorf("parseProcess = %+v, %v; want %+v", got, err, want)
	}
	if got, err := parseProcess("730 (a) S 1", ""); err == nil {
		t.Errorf("half a stat was read as %+v", got)
	}
}
