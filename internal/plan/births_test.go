package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

// born is whose the kernel side holds a new cgroup to be.
func (b Births) born(hierarchy, path string) ContractID {
	key, name := hierarchy+path, path[strings.LastIndexByte(path, '/')+1:]
	if id, ok := b.Paths[key]; ok {
		return id
	}
	for end := len(key); end >= len(key)-len(name); end-- {
		if id, ok := b.Prefixes[key[:end]]; ok {
			return id
		}
	}
	if hierarchy == "" {
		return b.Names[name]
	}
	return Unclaimed
}

// TestBirthsAgreeWithTheWalk makes every cgroup of the tree anew: the kernel
// gives it to the workload that the walk of the next apply gives it to. Only
// what the kernel follows no pattern to is left to the walk.
func TestBirthsAgreeWithTheWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &policy.Policy{}
		controller := rapid.SampledFrom([]string{"", "memory"}).Draw(t, "controller")
		patterns := []string{
			"/a", "/a/b", "/a/*", "/a/b*", "/a/**", "/*/b", "/?/b", "/a*", "/a/?", "/a/?*", "/**", "/*/**", "/a/b/**", "/a/*/d", "/**/b", "/**/?", "/**/d*",
		}
		for i, pattern := range rapid.SliceOfNDistinct(rapid.SampledFrom(patterns), 1, 6, rapid.ID[string]).Draw(t, "patterns") {
			p.Workloads = append(p.Workloads, policy.Workload{Name: string(rune('a' + i)), Match: []policy.Selector{
				{Kind: policy.KindCgroup, Cgroup: policy.Cgroup{Controller: controller, Pattern: pattern}},
			}})
		}
		w, errs := Wanted(p, hostOf(p), IDs{}, nil)
		if len(errs) > 0 {
			t.Fatal(policy.Errors(errs))
		}
		for i, path := range tree[1:] {
			walked, hierarchy := w.Rules.Cgroups[v2ID(i+1)], ""
			if controller != "" {
				walked, hierarchy = w.Rules.Cgroups1[v1ID(i+1)], "1"
			}
			if id := w.Rules.Births.born(hierarchy, path); id != Unclaimed && id != walked {
				t.Fatalf("%s is born to %d, the walk gives it to %d", path, id, walked)
			}
		}
	})
}
