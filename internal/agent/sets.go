package agent

import (
	"fmt"
	"slices"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// Terms are what Set and SetGroup give beside the policy. What is nil stays as it
// was given before.
type Terms struct {
	Priority   *policy.Priority
	Max        *policy.Rate      // of egress; 0 takes away the limit that was given before
	MaxIngress *policy.Rate      // likewise, of what its sockets receive
	ByIngress  policy.Method     // how MaxIngress is held: MethodAuto, MethodPace, MethodEDT or MethodHTB
	TCPMemory  *policy.TCPMemory // the zero value takes away the bound that was given before
	VRF        *string           // of the host, that new sockets are bound to; "" takes away the one that was given before
}

// limits reports whether the terms give a limit.
func (t Terms) limits() bool { return t.sends() || t.receives() }

// sends reports whether the terms give a limit of what is sent.
func (t Terms) sends() bool { return t.Max != nil && *t.Max != 0 }

// receives reports whether they give one of what sockets receive.
func (t Terms) receives() bool { return t.MaxIngress != nil && *t.MaxIngress != 0 }

// bounds reports whether they bound the memory of sockets.
func (t Terms) bounds() bool { return t.TCPMemory != nil && t.TCPMemory.Max != 0 }

// of is the set of a name under the terms: the one that is known, changed, or a
// new one. It is nothing where it promises nothing.
func (t Terms) of(s state.Set, known bool) (next state.Set, nothing bool) {
	if !known {
		s.Priority = policy.Priority{Default: policy.Unset}
	}
	if t.Priority != nil {
		s.Priority = *t.Priority
	}
	if t.Max != nil {
		s.Max = *t.Max
	}
	if t.MaxIngress != nil {
		s.MaxIngress, s.ByIngress = *t.MaxIngress, t.ByIngress
	}
	if t.TCPMemory != nil {
		s.TCPMemory = *t.TCPMemory
	}
	if t.VRF != nil {
		s.VRF = *t.VRF
	}
	return s, s.Priority.Empty() && !s.Contract().Limited() && s.TCPMemory.Max == 0 && s.VRF == ""
}

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
