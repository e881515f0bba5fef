package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

// byMemcg is a policy with a bound that the memory controller holds, and a host for it.
func byMemcg(t *testing.T) (*policy.Policy, Facts) {
	t.Helper()
	p := parsed(t, "version: 1\nworkloads: {held: {match: [{cgroup: memory:/job}], tcp-memory: {max: 4MiB, via: memcg}}}\n")
	f := Facts{Root: true, Features: kernel(), Cgroup2: "/c", Cgroup1: map[string]string{"memory": "/m"}, KmemTCP: true,
		Cgroups: map[policy.Cgroup][]CgroupMatch{p.Workloads[0].Match[0].Cgroup: {{"/job", 7}}}}
	return p, f
}

func TestMemcg(t *testing.T) {
	p, f := byMemcg(t)
	w := wanted(t, p, f, IDs{})
	id := w.Contracts["held"].ID
	if want := (Memcg{Path: "/job", Max: 4 << 20}); w.Memcg[id] != want || len(w.Rules.Memory) > 0 || w.Holds {
		t.Errorf("wanted are %+v and %+v", w.Memcg, w.Rules.Memory)
	}
	if first := Diff(State{}, w); len(first) != 1 || !strings.HasPrefix(first[0].String(), "+ workload held: tcp-memory at most 4MiB by memcg: cgroup: memory:/job") {
		t.Errorf("first: %v", first)
	}
	for name, c := range map[string]struct {
		have     Memcg
		pools    map[ContractID]Pool
		verdict  Verdict
		evidence string
	}{
		"in use":    {w.Memcg[id], map[ContractID]Pool{id: {May: 1 << 20, Most: 3 << 20, Denied: 5}}, Kept, "read back: {max: 4MiB, via: memcg}; 1.0MiB in use, at most 3.0MiB since its cgroup was made, memory denied 5 times"},
		"too much":  {w.Memcg[id], map[ContractID]Pool{id: {May: 5 << 20, Most: 5 << 20}}, Broken, "read back: {max: 4MiB, via: memcg}; 5.0MiB in use, at most 5.0MiB since its cgroup was made"},
		"none":      {Memcg{}, map[ContractID]Pool{id: {}}, Broken, "tcp-memory none -> {max: 4MiB, via: memcg}"},
		"another":   {Memcg{Path: "/job", Max: 2 << 20}, nil, Broken, "tcp-memory {max: 2MiB, via: memcg} -> {max: 4MiB, via: memcg}"},
		"elsewhere": {Memcg{Path: "/old", Max: 4 << 20}, nil, Broken, "tcp-memory by memcg of /old -> of /job"},
		"born":      {Memcg{Path: "/job", Max: 4 << 20, Open: 2}, nil, Broken, "tcp-memory by memcg: 2 cgroups below /job without it"},
	} {
		t.Run(name, func(t *testing.T) {
			have := wanted(t, p, f, IDs{}).State
			have.Memcg = map[ContractID]Memcg{id: c.have}
			if c.have == (Memcg{}) {
				have.Memcg = nil
			}
			judged := Judge(p, w, Diff(have, w), Measured{Pools: c.pools})
			if len(judged) != 1 || judged[0].Verdict != c.verdict || judged[0].Evidence != c.evidence || judged[0].Terms() != "tcp-memory at most 4MiB by memcg" {
				t.Errorf("judged: %+v", judged)
			}
		})
	}
}

// What memcg can not hold here is refused, each with why.
func TestMemcgCheck(t *testing.T) {
	for name, c := range map[string]struct {
		lack func(*Facts)
		want []string
	}{
		"nothing":      {func(*Facts) {}, nil},
		"no hierarchy": {func(f *Facts) { f.Cgroup1 = nil }, []string{`no v1 hierarchy "memory" is mounted here`}},
		"no kmem.tcp":  {func(f *Facts) { f.KmemTCP = false }, []string{`workload "held": memcg can not hold its tcp-memory: kernel has no memory.kmem.tcp`}},
		"no cgroup":    {func(f *Facts) { f.Cgroups = nil }, []string{`workload "held": memcg can not hold its tcp-memory: no cgroup memory:/job here`}},
	} {
		t.Run(name, func(t *testing.T) {
			p, f := byMemcg(t)
			c.lack(&f)
			var got []string
			for _, d := range Check(p, f) {
				got = append(got, d.Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
