package workload

import (
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A patternNode is a place in the trie of all patterns of one hierarchy. A walk
// carries the set of nodes that the path so far has reached, so a cgroup costs
// a map look-up per node in that set, however many patterns there are; and a
// directory with an empty set need not be entered.
type patternNode struct {
	literal map[string]*patternNode
	globs   []patternEdge
	deep    *patternNode // after a ** within the pattern
	loop    bool         // this node is such a deep: it stays reached further down
	ends    []policy.Cgroup
	below   []policy.Cgroup // patterns with a last **: this cgroup and all below it
}

type patternEdge struct {
	glob   policy.Cgroup // the component alone, as a path of its own
	prefix string        // what precedes its first wildcard, to say no quickly
	to     *patternNode
}

func newPatternNode() *patternNode {
	return &patternNode{literal: make(map[string]*patternNode)}
}

// add puts a pattern into the trie, of which n is the root.
func (n *patternNode) add(p policy.Cgroup) {
	parts := splitPath(p.Pattern)
	for i, part := range parts {
		switch {
		case part == "**" && i == len(parts)-1:
			n.below = append(n.below, p)
			return
		case part == "**":
			if n.deep == nil {
				n.deep = newPatternNode()
				n.deep.loop = true
			}
			n = n.deep
		case strings.ContainsAny(part, "*?"):
			n = n.glob(part)
		default:
			next := n.literal[part]
			if next == nil {
				next = newPatternNode()
				n.literal[part] = next
			}
			n = next
		}
	}
	n.ends = append(n.ends, p)
}

func (n *patternNode) glob(part string) *patternNode {
	for _, edge := range n.globs {
		if edge.glob.Pattern == "/"+part {
			return edge.to
		}
	}
	to := newPatternNode()
	prefix := part[:strings.IndexAny(part, "*?")]
	n.globs = append(n.globs, patternEdge{policy.Cgroup{Pattern: "/" + part}, prefix, to})
	return to
}

// A reached is the state of a walk at one cgroup.
type reached struct {
	nodes []*patternNode
	below []policy.Cgroup // the present cgroup and every one below it match these
}

// start is the state at the root of the hierarchy.
func (n *patternNode) start() reached {
	var r reached
	r.enter(n)
	return r
}

// enter adds a node and those that it leads to without consuming a component.
func (r *reached) enter(n *patternNode) {
	for ; n != nil; n = n.deep {
		for _, have := range r.nodes {
			if have == n {
				return
			}
		}
		r.nodes = append(r.nodes, n)
		if len(n.below) > 0 {
			// The full slice expression keeps siblings from sharing a tail.
			r.below = append(r.below[:len(r.below):len(r.below)], n.below...)
		}
	}
}

// step is the state one component further down.
func (r reached) step(name string) reached {
	next := reached{below: r.below}
	for _, n := range r.nodes {
		if n.loop {
			next.enter(n)
		}
		if to := n.literal[name]; to != nil {
			next.enter(to)
		}
		for _, edge := range n.globs {
			if strings.HasPrefix(name, edge.prefix) && edge.glob.Match("/"+name) {
				next.enter(edge.to)
			}
		}
	}
	if len(next.below) > 1 {
		next.below = distinct(next.below)
	}
	return next
}

// matches lists the patterns that match the present cgroup, each once.
func (r reached) matches() []policy.Cgroup {
	all := r.below
	for _, n := range r.nodes {
		if len(n.ends) > 0 {
			all = append(all[:len(all):len(all)], n.ends...)
		}
	}
	return distinct(all)
}

// dead reports that nothing below the present cgroup can match.
func (r reached) dead() bool {
	if len(r.below) > 0 {
		return false
	}
	for _, n := range r.nodes {
		if n.loop || len(n.literal) > 0 || len(n.globs) > 0 {
			return false
		}
	}
	return true
}

// names returns the only children that can matter, if they are few enough to
// be asked for by name. A cgroup directory holds some seventy control files
// that a listing has to skip, a look-up by name does not.
func (r reached) names() (names []string, ok bool) {
	if len(r.below) > 0 {
		return nil, false
	}
	for _, n := range r.nodes {
		if n.loop || len(n.globs) > 0 || len(names)+len(n.literal) > 16 {
			return nil, false
		}
		for name := range n.literal {
			names = append(names, name)
		}
	}
	return distinct(names), true
}

// distinct drops repetitions, keeping the order.
func distinct[T comparable](items []T) []T {
	if len(items) < 2 {
		return items
	}
	seen := make(map[T]bool, len(items))
	var out []T
	for _, item := range items {
		if !seen[item] {
			seen[item] = true
			out = append(out, item)
		}
	}
	return out
}

// splitPath returns the components of an absolute path, none for "/".
func splitPath(path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}
