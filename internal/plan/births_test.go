package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

func TestFollowed(t *testing.T) {
	long := strings.Repeat("x", 248)
	for pattern, want := range map[string]bool{
		"/a": true, "/a/**": true, "/**": true, "/a/*": true, "/a/b*": true, "/**/b.service": true, "/": true,
		"/*/b": false, "/a/?": false, "/a/*b": false, "/**/b*.service": false, "/a/*/c/**": false,
		"/" + long: true, "/" + long + "x": false, "/**/" + long[:127]: true, "/**/" + long[:128]: false,
	} {
		if got := Followed(policy.Cgroup{Pattern: pattern}); got != want {
			t.Errorf("%.30s: followed %v, want %v", pattern, got, want)
		}
	}
	if Followed(policy.Cgroup{Controller: "memory", Pattern: "/**/b.service"}) {
		t.Error("names in a v1 hierarchy are followed")
	}
}

func TestBirths(t *testing.T) {
	c := newCgroupClaims()
	for i, p := range []policy.Cgroup{
		{Pattern: "/a/**"}, {Pattern: "/a"}, {Pattern: "/b/**"}, {Pattern: "/c/*"}, {Pattern: "/c/x*"}, {Pattern: "/**/u.service"},
		{Controller: "memory", Pattern: "/a"}, {Controller: "memory", Pattern: "/m*"}, {Pattern: "/*/none"}, {Pattern: "/c/*"}, {Pattern: "/**"},
	} {
		c.add(p, nil, ContractID(i+1))
	}
	got := Births{c.paths.contracts(), c.prefixes.contracts(), c.names.contracts()}
	want := Births{
		Paths:    map[string]ContractID{"/a": 2, "/b": 3, "1/a": 7, "/": 11},
		Prefixes: map[string]ContractID{"/c/": 4, "/c/x": 5, "1/m": 8},
		Names:    map[string]ContractID{"u.service": 6},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
