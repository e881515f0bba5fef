package bpf

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// drawRules makes rules as plan makes them.
func drawRules(t *rapid.T) plan.Rules {
	ids := rapid.Map(rapid.IntRange(0, 7), func(n int) plan.ContractID { return plan.FirstID + plan.ContractID(n) })
	r := noRules()
	r.Cgroups = rapid.MapOfN(rapid.Uint64Range(1, 1<<50), ids, 0, 20).Draw(t, "cgroups")
	r.Cgroups1 = rapid.MapOfN(rapid.Uint64Range(1, 1<<50), ids, 0, 20).Draw(t, "v1 cgroups")
	if len(r.Cgroups1) > 0 {
		r.Controller1 = "memory"
	}
	r.Users = rapid.MapOfN(rapid.Uint32(), ids, 0, 5).Draw(t, "users")
	r.Exes = rapid.MapOfN(rapid.Custom(func(t *rapid.T) plan.ExeID {
		return plan.ExeID{Device: rapid.Uint32().Draw(t, "device"), Inode: rapid.Uint64().Draw(t, "inode")}
	}), ids, 0, 5).Draw(t, "exes")
	path := rapid.StringMatching(`1?/[a-zé/]{0,200}`)
	r.Births.Paths = rapid.MapOfN(path, ids, 0, 5).Draw(t, "paths")
	r.Births.Prefixes = rapid.MapOfN(path, ids, 0, 5).Draw(t, "prefixes")
	r.Births.Names = rapid.MapOfN(rapid.StringMatching(`[a-z.]{1,120}`), ids, 0, 5).Draw(t, "names")
	r.Tuples = drawTuples(t)
	for range rapid.IntRange(0, 20).Draw(t, "flows") {
		if len(r.Tuples) > 0 {
			r.Flows[drawKey(t, r.Tuples)] = ids.Draw(t, "contract")
		}
	}
	return r
}

func TestReadBack(t *testing.T) {
	room := newRoom(t)
	n := uint32(0)
	rapid.Check(t, func(rt *rapid.T) {
		n++
		rules := drawRules(rt)
		births := rapid.Bool().Draw(rt, "births")
		g, err := room.Begin(n, rules, Options{Cgroups: 20, Controller: -1, Births: births})
		if err != nil {
			rt.Fatal(err)
		}
		defer g.Close()
		defer room.RemoveGeneration(n)
		if err := g.Fill(rules); err != nil {
			rt.Fatal(err)
		}
		again, err := room.Open(n)
		if err != nil {
			rt.Fatal(err)
		}
		defer again.Close()
		got, err := again.Rules()
		if err != nil {
			rt.Fatal(err)
		}
		got.Controller1 = rules.Controller1 // the kernel does not know its name
		if diff := cmp.Diff(rules, got, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("read back what was not written:\n%s", diff)
		}
	})
}

// TestBury has a cgroup die between the look that found it and its being written.
func TestBury(t *testing.T) {
	room := newRoom(t)
	found, later := noRules(), noRules()
	found.Controller1 = "memory"
	for id := range uint64(3) {
		found.Cgroups[id], found.Cgroups1[id] = plan.FirstID, plan.FirstID
	}
	maps.Copy(later.Cgroups, found.Cgroups)
	maps.Copy(later.Cgroups1, found.Cgroups1)
	delete(later.Cgroups, 1)
	delete(later.Cgroups1, 2)
	g := begin(t, room, 1, found, bare)
	for range 2 { // burying twice is burying once
		if err := g.Bury(found, later); err != nil {
			t.Fatal(err)
		}
		got, err := g.Rules()
		if err != nil || !maps.Equal(got.Cgroups, later.Cgroups) || !maps.Equal(got.Cgroups1, later.Cgroups1) {
			t.Errorf("left are %v and %v (%v)", got.Cgroups, got.Cgroups1, err)
		}
	}
}

func TestReadBackWitness(t *testing.T) {
	testutil.Tool(t, "bpftool")
	room := newRoom(t)
	rules := noRules()
	for i := range 10_000 {
		rules.Cgroups[1<<33+uint64(i)] = plan.FirstID + plan.ContractID(i)
	}
	begin(t, room, 1, rules, Options{Cgroups: len(rules.Cgroups), Controller: -1})
	out := testutil.Output(t, "bpftool", "map", "dump", "pinned", filepath.Join(room.Dir, "g1", "cgroups"))
	if n := strings.Count(out, `"key"`); n != 10_000 {
		t.Errorf("bpftool finds %d cgroups, want 10000", n)
	}
	if want := `"key": 8589934592,`; !strings.Contains(out, want) {
		t.Errorf("bpftool does not find %s in %.300s", want, out)
	}
}
