package bpf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(childMain(os.Stdin, os.Stdout))
	}
	testutil.Leaks(m)
}

// newRoom makes a room on a BPF file system and a cgroup of its own, and takes
// everything out of the kernel at the end.
func newRoom(t testing.TB) Room {
	t.Helper()
	testutil.Needs(t, "root", "cgroup2", "sk_storage")
	r := Room{Dir: filepath.Join(testutil.BPFFS(t), "weir"), Cgroup: testutil.Cgroup2(t)}
	t.Cleanup(func() {
		if err := r.Remove(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// noRules is rules that claim nothing.
func noRules() plan.Rules {
	return plan.Rules{
		Cgroups: map[uint64]plan.ContractID{}, Cgroups1: map[uint64]plan.ContractID{},
		Users: map[uint32]plan.ContractID{}, Exes: map[plan.ExeID]plan.ContractID{},
		Flows: map[plan.FlowKey]plan.ContractID{},
		Births: plan.Births{
			Paths: map[string]plan.ContractID{}, Prefixes: map[string]plan.ContractID{}, Names: map[string]plan.ContractID{},
		},
	}
}

// promises gives contract FirstID+n the priority n, all of serial 1, and lets
// everything else keep its own.
func promises(n int) plan.LinkRules {
	r := plan.LinkRules{L2: 14, Contracts: map[plan.ContractID]plan.Promise{
		plan.Unclaimed: {Priority: plan.Keep}, plan.Unclassified: {Priority: plan.Keep},
	}}
	for p := range plan.ContractID(policy.Levels) {
		r.Contracts[plan.LadderID+p] = plan.Promise{Priority: uint32(p)}
	}
	for i := range plan.ContractID(n) {
		r.Contracts[plan.FirstID+i] = plan.Promise{Priority: uint32(i), Serial: 1}
	}
	return r
}

// begin makes and fills generation n, which may have a few links.
func begin(t testing.TB, r Room, n uint32, rules plan.Rules, o Options) *Generation {
	t.Helper()
	o.Links = max(o.Links, 4)
	g, err := r.Begin(n, rules, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	if err := g.Fill(rules); err != nil {
		t.Fatal(err)
	}
	return g
}

// load gives a generation its program for a link.
func load(t testing.TB, g *Generation, index int, rules plan.Rules, l plan.LinkRules) {
	t.Helper()
	if err := g.LoadLink(index, rules, l, nil); err != nil {
		t.Fatal(err)
	}
}
