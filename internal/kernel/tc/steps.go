package tc

import (
	"strings"

	"github.com/weir-net/weir/internal/plan"
)

// Options is what Steps and Apply have to be told beside the queue.
type Options struct {
	// TXQueues is the number of TX queues that the device uses; only mqprio asks.
	// (A veth made without numtxqueues has as many as the host has CPUs, and uses one.)
	TXQueues int
	// Adopt lets a foreign root be replaced. Save it first.
	Adopt bool
}

// Steps are the ops that lead from what the kernel holds to the wanted queue,
// in order. None means that it is there. They may be cut short anywhere: Steps
// then gives those that are left to do, and the link carries packets meanwhile,
// unordered. Asking never changes anything.
//
// A tree of ours that only differs in rates, limits, priomap or shares is changed
// in its place; everything else goes by way of the kernel's default qdisc.
func Steps(link int, want plan.Queue, opts Options) ([]Op, error) {
	nodes, err := build(want, opts.TXQueues)
	if err != nil {
		return nil, refuse(link, ErrUnsupported, "%v", err)
	}
	c, err := dial()
	if err != nil {
		return nil, err
	}
	defer c.close()
	all, filters, err := readOurs(c, link)
	if err != nil {
		return nil, err
	}
	root := all.root()
	if len(nodes) > 0 && !root.byKernel() && root.handle != rootHandle && !opts.Adopt {
		return nil, refuse(link, ErrForeign, "%s is not Weir's, and may be replaced only with adopt: true", root)
	}
	return steps(link, all, filters, nodes)
}

// steps is the pure part: a foreign root in have is one that may be replaced.
func steps(link int, have, filters entries, want []node) ([]Op, error) {
	root := have.root()
	ours := root.handle == rootHandle
	switch {
	case len(want) == 0 && !ours:
		return nil, nil
	case len(want) == 0:
		return []Op{deleteOp(link, root)}, nil
	case root.byKernel():
		return addAll(link, want, false), nil
	case !ours && have.replaceable(want[0].kind, want[0].handle):
		return addAll(link, want, true), nil
	case !ours:
		return append([]Op{deleteOp(link, root)}, addAll(link, want, false)...), nil
	}
	rebuild, err := needsRebuild(have, want)
	if err != nil {
		return nil, err
	}
	if rebuild {
		return append([]Op{deleteOp(link, root)}, addAll(link, want, false)...), nil
	}
	return repair(link, have, filters, want)
}

// replaceable reports that one message can set a new root in the old one's
// place, so that the link is never without either. Where the old tree has a
// qdisc of that handle, the kernel would make that one the root.
func (have entries) replaceable(kind string, handle uint32) bool {
	_, taken := have.find(false, handle)
	return !taken && !exclusive(have.root().kind) && !exclusive(kind)
}

// exclusive kinds own the traffic classes of the device: an old one that is
// torn down after the new one was set up takes those away from it.
func exclusive(kind string) bool { return kind == "mqprio" || kind == "taprio" }

func addAll(link int, want []node, replace bool) []Op {
	var ops []Op
	for i, n := range want {
		ops = append(ops, addOp(link, n, replace && i == 0))
	}
	return ops
}

// needsRebuild reports that a tree of ours can not be mended where it stands:
// another scheduler, another number of classes, a class that hangs elsewhere or
// does not belong. (Deleting a single class fails as soon as a filter of
// anybody points to it.) Shares come and go in a tree that stands, and so does a
// leaf of one that is to borrow as another class.
func needsRebuild(all entries, want []node) (bool, error) {
	have := all.index()
	for _, n := range want {
		e, ok := have[n.id()]
		if !ok {
			if n.parent == rootParent && !n.class {
				return true, nil
			}
			continue
		}
		if !n.is(e) {
			if n.class || n.parent == rootParent {
				return true, nil
			}
			continue
		}
		words, inPlace, err := n.differs(e)
		if err != nil {
			return false, err
		}
		if _, _, share := e.ofShare(); len(words) > 0 && !inPlace && !share {
			return true, nil
		}
	}
	for _, e := range all.unexpected(want) {
		if _, _, share := e.ofShare(); e.isClass() && !share {
			return true, nil
		}
	}
	return false, nil
}

// repair mends a tree of ours in its place: what does not belong goes first,
// as a wrong leaf stands where the right one has to be.
func repair(link int, all, filters entries, want []node) ([]Op, error) {
	var ops []Op
	for _, parent := range parents(filters) {
		ops = append(ops, flushOp(link, parent))
	}
	for _, e := range leaving(all.unexpected(want)) {
		ops = append(ops, deleteOp(link, e))
	}
	have, anew := all.index(), map[uint32]bool{}
	for _, n := range want {
		e, ok := have[n.id()]
		if !ok || !n.is(e) || anew[n.parent] {
			ops, anew[n.handle] = append(ops, addOp(link, n, false)), anew[n.parent]
			continue
		}
		words, inPlace, err := n.differs(e)
		switch {
		case err != nil:
			return nil, err
		case len(words) == 0:
		case inPlace:
			ops = append(ops, changeOp(link, n, strings.Join(words, ", ")))
		default:
			for _, part := range all.below(e) {
				ops = append(ops, deleteOp(link, part))
			}
			if n.isShare() { // its leaves were deleted before it, and each took its queue along
				ops = append(ops, deleteOp(link, e), addOp(link, n, false))
			} else { // a leaf that is to borrow as another class: with a new queue it does so from its next packet on
				ops = append(ops, changeOp(link, n, strings.Join(words, ", ")))
			}
			anew[n.handle] = true
		}
	}
	return ops, nil
}
