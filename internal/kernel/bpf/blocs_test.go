package bpf

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// TestBlocs finds the blocs that a packet of a process deep in a tree of cgroups is charged
// to: in each limit that of the outermost workload with a weight below it.
func TestBlocs(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	w := newWire(t)
	var dirs []string
	for dir := w.room.Cgroup; len(dirs) < 4; {
		dir = mkdir(t, dir, string(rune('a'+len(dirs))))
		dirs = append(dirs, dir)
	}
	c := startChild(t, w.here, childOptions{cgroup: dirs[3]})
	id := func(n int) plan.ContractID { return plan.FirstID + plan.ContractID(n) }
	together := func(n int) plan.Owner { return plan.Owner{Contract: id(n)} }
	here := func(n int) plan.Owner { return plan.Owner{Contract: id(n), Link: w.link.Index, Packets: true} }
	own := plan.Owner{Contract: plan.OwnEgress, Link: w.link.Index}
	in := func(of plan.Owner, member int) plan.Owner {
		of.Member = id(member)
		return of
	}
	// /a/b/c/d are of the workloads 4 to 1.
	for name, o := range map[string]struct {
		weights []int // the workloads that have any
		limits  []plan.Owner
		binds   []plan.Owner // those with a member, and the limits of which the packet is none
	}{
		"its own":               {[]int{1}, []plan.Owner{together(2), here(4)}, []plan.Owner{in(together(2), 1), in(here(4), 1)}},
		"not in its own limit":  {[]int{1}, []plan.Owner{together(1), together(2)}, []plan.Owner{together(1), in(together(2), 1)}},
		"the outermost":         {[]int{1, 2, 3}, []plan.Owner{together(2), together(3), together(4)}, []plan.Owner{in(together(2), 1), in(together(3), 2), in(together(4), 3)}},
		"one between":           {[]int{3}, []plan.Owner{together(1), together(2), here(3), together(4)}, []plan.Owner{together(1), together(2), here(3), in(together(4), 3)}},
		"in the link's own":     {[]int{1, 3}, []plan.Owner{own, together(2)}, []plan.Owner{in(own, 3), in(together(2), 1)}},
		"nobody":                {nil, []plan.Owner{own, together(2)}, []plan.Owner{own, together(2)}},
		"of a limit that is no": {[]int{4}, []plan.Owner{together(1), together(4)}, []plan.Owner{together(1), together(4)}},
	} {
		t.Run(name, func(t *testing.T) {
			rules, promises := noRules(), w.promises()
			limits := map[plan.Owner]policy.Rate{}
			for i, dir := range dirs {
				rules.Cgroups[cgroupID(t, dir)] = id(4 - i)
			}
			for _, of := range o.limits {
				limits[of] = 64e3
			}
			limit(&rules, &promises, limits)
			rules.Blocs = map[plan.Owner]plan.Weight{}
			for _, member := range o.weights {
				p := promises.Contracts[id(member)]
				p.Weighted = true
				promises.Contracts[id(member)] = p
				for _, of := range o.limits {
					if of.Contract != id(member) {
						rules.Blocs[in(of, member)] = plan.Weight(1 + member)
					}
				}
			}
			g := w.publishTo(rules, promises, Options{Controller: -1, LinkLimits: len(limits)})
			read, err := g.Rules()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(rules.Blocs, read.Blocs); diff != "" && len(rules.Blocs) > 0 {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
			if got, err := g.Promises(w.link.Index); err != nil || got[id(1)].Weighted != slices.Contains(o.weights, 1) {
				t.Errorf("%+v, %v", got[id(1)], err)
			}
			before, err := g.Held()
			if err != nil {
				t.Fatal(err)
			}
			var all map[plan.Owner]plan.Held
			w.insist(firstClass+1, func() { c.do("udp %s", w.to4(4000)) }, func() bool {
				if all, err = g.Held(); err != nil {
					t.Fatal(err)
				}
				return !slices.ContainsFunc(o.binds, func(of plan.Owner) bool { return all[of].Passed == before[of].Passed })
			})
			var charged, want []string
			for of, h := range all {
				// Each limit has what its blocs have; neighbours are asked for below the link's own, too.
				if h.Passed > before[of].Passed && (of.Member != 0 || !slices.ContainsFunc(o.binds, func(b plan.Owner) bool { return b.Limit() == of && b.Member != 0 })) {
					charged = append(charged, fmt.Sprint(of))
				}
				if of.Member != 0 && all[of.Limit()].Passed < h.Passed {
					t.Errorf("%+v had more than its limit: %d and %d bytes", of, h.Passed, all[of.Limit()].Passed)
				}
			}
			for _, of := range o.binds {
				want = append(want, fmt.Sprint(of))
			}
			slices.Sort(charged)
			slices.Sort(want)
			if diff := cmp.Diff(want, charged); diff != "" {
				t.Errorf("charged (-want +got):\n%s", diff)
			}
		})
	}
}
