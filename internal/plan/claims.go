package plan

import (
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A claim says how well a pattern fits a cgroup: whole paths before prefixes,
// the longest prefix first, names last. The kernel side tries the same order
// when a cgroup is born; what it can not follow comes after all that, so that
// no apply takes a cgroup from whom it was born to.
type claim struct {
	rank     int
	contract ContractID
}

// claims keeps the best claim on everything; of two that are as good, the first.
type claims[K comparable] map[K]claim

func (c claims[K]) add(k K, rank int, id ContractID) {
	if have, ok := c[k]; !ok || rank > have.rank {
		c[k] = claim{rank, id}
	}
}

// contracts forgets how good the claims are.
func (c claims[K]) contracts() map[K]ContractID {
	all := make(map[K]ContractID, len(c))
	for k, v := range c {
		all[k] = v.contract
	}
	return all
}

// rank orders the patterns that match one cgroup; the highest has it.
func rank(c policy.Cgroup) int {
	const whole, top, prefix, name, unfollowed = 1<<20 + 1, 1 << 20, 1 << 10, 0, -1 << 20
	kind, literal := birth(c.Pattern)
	_, deep := subtree(c.Pattern)
	switch {
	case !Followed(c):
		return unfollowed + len(literal)
	case kind == birthPath && deep:
		return top
	case kind == birthPath:
		return whole
	case kind == birthName:
		return name
	}
	return prefix + len(literal)
}

// covers reports whether a match of the pattern needs a claim of its own. Of
// "/batch/**" only /batch does.
func covers(pattern, path string) bool {
	top, deep := subtree(pattern)
	return !deep || depth(path) == depth(top)
}

// depth counts the components of a path.
func depth(path string) int { return strings.Count(strings.TrimSuffix(path, "/"), "/") }

// cgroupClaims collects the claims on cgroups: on those that are there and on
// those to come.
type cgroupClaims struct {
	v2, v1                 claims[uint64]
	paths, prefixes, names claims[string]
}

func newCgroupClaims() cgroupClaims {
	return cgroupClaims{claims[uint64]{}, claims[uint64]{}, claims[string]{}, claims[string]{}, claims[string]{}}
}

// add files what a pattern matches now, and the pattern itself for what is born
// later.
func (c cgroupClaims) add(pattern policy.Cgroup, now []CgroupMatch, id ContractID) {
	c.expect(pattern, id)
	ids := c.v2
	if pattern.Controller != "" {
		ids = c.v1
	}
	r := rank(pattern)
	for _, m := range now {
		if covers(pattern.Pattern, m.Path) {
			ids.add(m.ID, r, id)
		}
	}
}

// inherit gives every cgroup of a v1 hierarchy the contract of its nearest
// claimed ancestor: sockets remember one v1 cgroup, not the way up.
func (c claims[K]) inherit(parents map[K]K) map[K]ContractID {
	var none K
	all := make(map[K]ContractID, len(c))
	for id := range parents {
		for a := id; a != none; a = parents[a] {
			if claim, ok := c[a]; ok {
				all[id] = claim.contract
				break
			}
		}
	}
	return all
}
