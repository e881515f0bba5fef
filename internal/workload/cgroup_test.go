package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

func makeCgroups(t testing.TB, base string, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.MkdirAll(filepath.Join(base, p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// matchPaths resolves patterns below the mount that holds dir. Patterns and
// results are relative to dir.
func matchPaths(t *testing.T, mount, dir string, patterns ...string) map[string][]string {
	t.Helper()
	base := strings.TrimPrefix(dir, mount)
	var list []policy.Cgroup
	for _, p := range patterns {
		if !strings.HasPrefix(p, "/**/") {
			p = base + p
		}
		list = append(list, policy.Cgroup{Pattern: p})
	}
	found, err := matchCgroups(t.Context(), mount, list)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	for p, matches := range found {
		for _, m := range matches {
			id, err := CgroupID(mount + m.Path)
			if err != nil || id != m.ID {
				t.Errorf("%s has id %d, %v; want %d", m.Path, m.ID, err, id)
			}
			key := strings.TrimPrefix(p.Pattern, base)
			got[key] = append(got[key], strings.TrimPrefix(m.Path, base))
		}
	}
	return got
}

func TestMatchCgroups(t *testing.T) {
	h, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for name, hierarchy := range map[string]struct {
		mount string
		dir   func(t testing.TB) string
	}{
		"v2": {h.V2, testutil.Cgroup2},
		"v1": {h.V1["memory"], func(t testing.TB) string { return testutil.Cgroup1(t, "memory") }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := hierarchy.dir(t)
			unit := fmt.Sprintf("weir-%d.service", os.Getpid())
			makeCgroups(t, dir, "batch/one/deep", "batch/two", "other/"+unit, unit, "web-1", "web-22")
			got := matchPaths(t, hierarchy.mount, dir,
				"/batch/**", "/batch", "/web-?", "/web-*", "/*/two", "/absent", "/**/"+unit)
			want := map[string][]string{
				"/batch/**":   {"/batch", "/batch/one", "/batch/one/deep", "/batch/two"},
				"/batch":      {"/batch"},
				"/web-?":      {"/web-1"},
				"/web-*":      {"/web-1", "/web-22"},
				"/*/two":      {"/batch/two"},
				"/**/" + unit: {"/other/" + unit, "/" + unit},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("matches (-want +got):\n%s", diff)
			}
		})
	}
}

// A few literal paths are looked up by name, which must not find control files.
func TestMatchCgroupsSkipsFiles(t *testing.T) {
	h, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	dir := testutil.Cgroup2(t)
	if got := matchPaths(t, h.V2, dir, "/cgroup.procs"); len(got) != 0 {
		t.Errorf("a control file was taken for a cgroup: %v", got)
	}
}

func TestMatchCgroupsStops(t *testing.T) {
	testutil.Needs(t, "cgroup2")
	h, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := matchCgroups(ctx, h.V2, []policy.Cgroup{{Pattern: "/**"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want Canceled", err)
	}
}

func TestUnitNames(t *testing.T) {
	dir := testutil.Cgroup2(t)
	h, err := FindHierarchies()
	if err != nil {
		t.Fatal(err)
	}
	prefix := fmt.Sprintf("weir-%d", os.Getpid())
	makeCgroups(t, dir, prefix+".slice/"+prefix+".scope", "again/"+prefix+".scope", "_"+prefix+".service", prefix)
	names, err := UnitNames(t.Context(), h.V2)
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	if want := []string{prefix + ".scope", prefix + ".service", prefix + ".slice"}; !slices.Equal(names, want) {
		t.Errorf("units %v, want %v", names, want)
	}
}

// Ten thousand patterns of three forms over ten thousand cgroups, of which each
// pattern matches one; the bar is 300 ms.
func BenchmarkMatchCgroups(b *testing.B) {
	const count = 10_000
	h, err := FindHierarchies()
	if err != nil {
		b.Fatal(err)
	}
	dir := testutil.Cgroup2(b)
	base := strings.TrimPrefix(dir, h.V2)
	var patterns []policy.Cgroup
	for i := range count {
		slice, name := fmt.Sprintf("s%d.slice", i/100), fmt.Sprintf("weir-%d.service", i)
		makeCgroups(b, dir, slice+"/"+name)
		form := [...]string{base + "/" + slice + "/" + name, "/**/" + name, base + "/" + slice + "/" + name + "/**"}[i%3]
		patterns = append(patterns, policy.Cgroup{Pattern: form})
	}
	b.ResetTimer()
	for b.Loop() {
		found, err := matchCgroups(b.Context(), h.V2, patterns)
		if err != nil {
			b.Fatal(err)
		}
		if len(found) != count || found[patterns[1]] == nil || found[patterns[1]][0] == (plan.CgroupMatch{}) {
			b.Fatalf("%d patterns found, want %d", len(found), count)
		}
	}
}
