package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/policy"
)

// claimed returns whose each cgroup of the tree is, by what is filed for the
// patterns, the n-th being contract n.
func claimed(t interface{ Fatal(...any) }, controller string, patterns ...string) map[string]ContractID {
	p := &policy.Policy{}
	for i, pattern := range patterns {
		p.Workloads = append(p.Workloads, policy.Workload{Name: string(rune('a' + i)), Match: []policy.Selector{
			{Kind: policy.KindCgroup, Cgroup: policy.Cgroup{Controller: controller, Pattern: pattern}},
		}})
	}
	f := hostOf(p)
	w, errs := Wanted(p, f, IDs{}, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	whose := map[string]ContractID{}
	for i, path := range tree {
		id := w.Rules.Cgroups1[v1ID(i)]
		if controller == "" {
			for a := v1ID(i); a != 0 && id == 0; a = f.Parents1[a] { // as the kernel looks for ancestors
				id = w.Rules.Cgroups[a-v1ID(0)+v2ID(0)]
			}
		}
		if id != 0 {
			whose[path] = id - FirstID + 1
		}
	}
	return whose
}

func TestClaims(t *testing.T) {
	for name, c := range map[string]struct {
		patterns []string
		want     map[string]ContractID
	}{
		"a path and all below":              {[]string{"/a"}, map[string]ContractID{"/a": 1, "/a/b": 1, "/a/c": 1, "/a/b/d": 1}},
		"the nearest ancestor":              {[]string{"/a", "/a/b"}, map[string]ContractID{"/a": 1, "/a/b": 2, "/a/c": 1, "/a/b/d": 2}},
		"in any order":                      {[]string{"/a/b", "/a"}, map[string]ContractID{"/a": 2, "/a/b": 1, "/a/c": 2, "/a/b/d": 1}},
		"a whole path before a prefix":      {[]string{"/a/*", "/a/b"}, map[string]ContractID{"/a/b": 2, "/a/c": 1, "/a/b/d": 2}},
		"a longer prefix":                   {[]string{"/a/*", "/a/b*"}, map[string]ContractID{"/a/b": 2, "/a/c": 1, "/a/b/d": 2}},
		"a name last":                       {[]string{"/**/b", "/a/*"}, map[string]ContractID{"/a/b": 2, "/a/c": 2, "/a/b/d": 2, "/e/b": 1}},
		"a subtree is its top":              {[]string{"/a/**"}, map[string]ContractID{"/a": 1, "/a/b": 1, "/a/c": 1, "/a/b/d": 1}},
		"a path before the subtree":         {[]string{"/a/**", "/a"}, map[string]ContractID{"/a": 2, "/a/b": 2, "/a/c": 2, "/a/b/d": 2}},
		"a subtree within another":          {[]string{"/a/**", "/a/b/**"}, map[string]ContractID{"/a": 1, "/a/b": 2, "/a/c": 1, "/a/b/d": 2}},
		"everything":                        {[]string{"/**"}, map[string]ContractID{"/": 1, "/a": 1, "/a/b": 1, "/a/c": 1, "/a/b/d": 1, "/e": 1, "/e/b": 1}},
		"the root":                          {[]string{"/", "/e"}, map[string]ContractID{"/": 1, "/a": 1, "/a/b": 1, "/a/c": 1, "/a/b/d": 1, "/e": 2, "/e/b": 2}},
		"a wildcard in the middle":          {[]string{"/*/b"}, map[string]ContractID{"/a/b": 1, "/a/b/d": 1, "/e/b": 1}},
		"a wildcard that is one character":  {[]string{"/a/?", "/a/*"}, map[string]ContractID{"/a/b": 2, "/a/c": 2, "/a/b/d": 2}},
		"the first of two that are as good": {[]string{"/a/*/**", "/a/*"}, map[string]ContractID{"/a/b": 1, "/a/c": 1, "/a/b/d": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, controller := range []string{"", "memory"} {
				if diff := cmp.Diff(c.want, claimed(t, controller, c.patterns...)); diff != "" {
					t.Errorf("controller %q:\n%s", controller, diff)
				}
			}
		})
	}
}

// TestClaimsAgree has both hierarchies answer alike: one looks for ancestors in
// the kernel, of the other every cgroup is filed.
func TestClaimsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		patterns := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			"/", "/a", "/a/b", "/a/*", "/a/**", "/**", "/*/b", "/a*", "/e", "/a/b/**", "/*/*", "/*/**",
		}), 1, 5, rapid.ID[string]).Draw(t, "patterns")
		if diff := cmp.Diff(claimed(t, "", patterns...), claimed(t, "memory", patterns...), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("v2 and v1 of %q differ:\n%s", patterns, diff)
		}
	})
}
