package agent

import (
	"github.com/weir-net/weir/internal/kernel/memcg"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// memcg is the scope's part of the v1 memory hierarchy.
func (a *Agent) memcg() (memcg.Tree, error) {
	t := memcg.Tree{RunDir: a.Scope.Run}
	h, err := workload.FindHierarchies()
	t.Mount = h.V1["memory"]
	return t, err
}

// addMemcg adds the step that holds TCP memory by the memory controller, or ends that.
func (c *change) addMemcg(w *plan.Want) {
	if len(w.Memcg) == 0 {
		c.removeMemcg()
		return
	}
	c.add("hold TCP memory by the memory controller", func() error {
		bounds, limits := map[string]plan.Memcg{}, map[string]policy.Size{}
		for name, contract := range w.Contracts {
			if m, ok := w.Memcg[contract.ID]; ok {
				bounds[name], limits[m.Path] = m, m.Max
			}
		}
		c.record.Memcg = bounds
		if err := c.save(); err != nil {
			return err
		}
		t, err := c.memcg()
		if err != nil {
			return err
		}
		return t.Apply(limits)
	})
}

// removeMemcg adds the step that gives cgroups back what they may hold, if there is
// anything of ours.
func (c *change) removeMemcg() {
	if len(c.record.Memcg) == 0 {
		return
	}
	c.add("give cgroups the TCP memory back that they had", func() error {
		t, err := c.memcg()
		if err != nil {
			return err
		}
		if err := t.Remove(); err != nil {
			return err
		}
		c.record.Memcg = nil
		return c.save()
	})
}

// readMemcg says which cgroups are held as they were to be, and what their sockets hold.
func (a *Agent) readMemcg(r *state.Record) (bounds map[plan.ContractID]plan.Memcg, pools map[plan.ContractID]plan.Pool, err error) {
	if len(r.Memcg) == 0 {
		return nil, nil, nil
	}
	t, err := a.memcg()
	if err != nil {
		return nil, nil, err
	}
	groups, err := t.Read()
	if err != nil {
		return nil, nil, err
	}
	bounds, pools = map[plan.ContractID]plan.Memcg{}, map[plan.ContractID]plan.Pool{}
	for name, was := range r.Memcg {
		c, known := r.IDs.Names[name]
		g, there := groups[was.Path]
		if !known || !there {
			continue
		}
		pools[c.ID] = plan.Pool{May: g.Used, Most: g.Highest, Denied: g.Failed}
		if g.Max <= policy.MaxTCPMemory { // else it is none
			bounds[c.ID] = plan.Memcg{Path: was.Path, Max: g.Max, Open: g.Open}
		}
	}
	return bounds, pools, nil
}

// kmemTCP reports whether the v1 memory hierarchy that is mounted here holds TCP memory.
func kmemTCP(f plan.Facts) bool { return memcg.Possible(f.Cgroup1["memory"]) }
