package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A Weighing is what the packets of a workload with a weight had of one limit that they
// share with others.
type Weighing struct {
	Workload string `json:"workload"`
	Limit    string `json:"limit"` // in words: "the limit of parent"
	Weight   Weight `json:"weight"`
	Packets  bool   `json:"packets,omitempty"` // it is a limit of packets
	Last     uint64 `json:"last"`              // bits or packets a second, over the last whole LimitWindow
}

// Weighings are those of all workloads with a weight, by their names, where any of their
// packets came by.
func (w *Want) Weighings(held map[Owner]Held) (all []Weighing) {
	for name, c := range w.Contracts {
		for of, weight := range w.Rules.Blocs {
			if of.Member == c.ID && held[of].Passed > 0 {
				all = append(all, Weighing{name, w.shared(of.Limit()), weight, of.Packets, held[of].Last})
			}
		}
	}
	slices.SortFunc(all, func(a, b Weighing) int {
		return cmp.Or(strings.Compare(a.Workload, b.Workload), strings.Compare(a.Limit, b.Limit))
	})
	return all
}

// String says it in words: "weight 3 in the limit of parent: 37.2Mbit in the last 5 s".
func (w Weighing) String() string {
	rate := policy.Rate(threeDigits(w.Last)).String()
	if w.Packets {
		rate = policy.PacketRate(threeDigits(w.Last)).String()
	}
	return fmt.Sprintf("%s in %s: %s in the last %g s", w.Weight, w.Limit, rate, LimitWindow.Seconds())
}
