package agent

import (
	"fmt"
	"slices"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

func setName(pid uint32) string { return fmt.Sprintf("pid %d", pid) }

func findSet(r *state.Record, name string) (state.Set, bool) {
	i := slices.IndexFunc(r.Sets, func(s state.Set) bool { return s.Name == name })
	if i < 0 {
		return state.Set{}, false
	}
	return r.Sets[i], true
}

func removeSet(r *state.Record, name string) {
	r.Sets = slices.DeleteFunc(slices.Clone(r.Sets), func(s state.Set) bool { return s.Name == name })
}

// gone names the sets whose process is gone with all its children. Those of
// net_prio are known by the groups that they are in.
func (a *Agent) gone(sets []state.Set, tags map[uint32]uint32, ids plan.IDs) (map[string]bool, error) {
	used := map[uint32]bool{}
	for _, tag := range tags {
		used[tag] = true
	}
	gone := map[string]bool{}
	for _, s := range sets {
		switch {
		case s.Selector != nil || lives(s.Process()):
		case s.Via == policy.ViaBPF:
			gone[s.Name] = !used[ids.Names[s.Name].Tag()]
		default:
			tree, err := a.tree().Read()
			if err != nil {
				return nil, err
			}
			gone[s.Name] = len(tree.Groups[groupOf(groupName(s.PID), s.Priority)].Processes) == 0
		}
	}
	return gone, nil
}

// lives reports whether exactly this process is there.
func lives(p state.Process) bool {
	is, err := workload.ReadProcess(p.PID)
	return err == nil && is.Start == p.Start
}

// without are the contracts that are left when some names are forgotten.
func without(ids plan.IDs, gone map[string]bool) plan.IDs {
	var rest []string
	for name := range ids.Names {
		if !gone[name] {
			rest = append(rest, name)
		}
	}
	return ids.Assign(rest)
}
