package plan

import (
	"fmt"

	"github.com/weir-net/weir/internal/policy"
)

// A Memcg is a bound on TCP memory that cgroup v1's memory controller holds: of a cgroup and
// all below it.
type Memcg struct {
	Path string      `json:"path"`           // below the root of the memory hierarchy
	Max  policy.Size `json:"max"`            // 0: the cgroup is gone
	Open int         `json:"open,omitempty"` // cgroups below it that the kernel does not hold to that; none is wanted
}

// Bound is what of it stands in a policy.
func (m Memcg) Bound() policy.TCPMemory {
	return policy.TCPMemory{Max: m.Max, Via: policy.MemoryViaMemcg}
}

// memcgOf are the bounds of all contracts that the memory controller holds.
func memcgOf(p *policy.Policy, ids IDs) map[ContractID]Memcg {
	bounds := map[ContractID]Memcg{}
	for _, w := range p.Workloads {
		if m := w.Contract.TCPMemory; w.Via == policy.ViaBPF && m.Via == policy.MemoryViaMemcg {
			bounds[ids.Names[w.Name].ID] = Memcg{Path: w.Match[0].Cgroup.Pattern, Max: m.Max}
		}
	}
	return bounds
}

// unlikeMemcg says how two of them differ, "" if they do not.
func unlikeMemcg(have, want Memcg) string {
	switch {
	case have == want:
		return ""
	case have.Max != want.Max:
		return unlikeMemory(have.bounded(), want.bounded())
	case have.Path != want.Path:
		return fmt.Sprintf("%s by memcg of %s -> of %s", PromiseMemory, have.Path, want.Path)
	}
	return fmt.Sprintf("%s by memcg: %s below %s without it", PromiseMemory, several(have.Open, "cgroup"), have.Path)
}

// bounded is the bound, and none where there is none.
func (m Memcg) bounded() policy.TCPMemory {
	if m.Max == 0 {
		return policy.TCPMemory{}
	}
	return m.Bound()
}
