package tc

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// A node is one qdisc or class that Weir builds.
type node struct {
	class          bool
	kind           string
	handle, parent uint32
	options        optionSet
	sizes          *sizeTable // nil: none
}

func (n node) id() id { return id{n.class, n.handle} }

func (n node) String() string { return objectString(n.class, n.kind, n.handle, n.parent) }

// is reports that the entry is this node, whatever its options.
func (n node) is(e entry) bool {
	return n.class == e.isClass() && n.kind == e.kind && n.handle == e.handle && n.parent == e.parent
}

// differs tells in words in which options the entry is not the node, and whether
// they can be changed where it stands.
func (n node) differs(e entry) (words []string, inPlace bool, err error) {
	o, err := decode(e)
	if err != nil {
		return nil, false, err
	}
	words, inPlace = differences(o.words(), n.options.words()), n.options.inPlace(o) && !n.owes(o)
	if odd, err := n.weighs(e); odd != "" || err != nil {
		return append(words, odd), false, err
	}
	return words, inPlace, nil
}

// weighs tells in words where the entry counts packets as something else than the node.
func (n node) weighs(e entry) (odd string, err error) {
	is, err := decodeSizeTable(e.sizeTable)
	switch {
	case err != nil:
		return "", err
	case n.sizes == nil && e.sizeTable != nil:
		return "it has a size table", nil
	case n.sizes != nil && is != *n.sizes:
		return "it has not the size table by which " + n.sizes.String(), nil
	}
	return "", nil
}

func (n node) message(typ, flags uint16) message {
	m := message{typ: typ, flags: flags, kind: n.kind, options: n.options.encode(),
		tcm: nl.TcMsg{Handle: n.handle, Parent: n.parent}}
	if n.sizes != nil {
		m.sizes = n.sizes.encode()
	}
	return m
}

func (n node) newType() uint16 {
	if n.class {
		return unix.RTM_NEWTCLASS
	}
	return unix.RTM_NEWQDISC
}

// build is the tree of a queue, parents before their children. txQueues counts
// only for mqprio.
func build(q plan.Queue, txQueues int) ([]node, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	q = q.Normal()
	rate := uint64(q.Rate) / 8
	switch q.Scheduler {
	case policy.HTB:
		return buildHTB(q, rate), nil
	case policy.Prio, policy.ETS:
		if rate == 0 {
			return buildBands(q, rootHandle, rootParent, rate), nil
		}
		nodes := []node{
			{kind: "htb", handle: rootHandle, parent: rootParent, options: htbRoot{minor(shaperClass)}},
			shaper(rate),
		}
		return append(nodes, buildBands(q, shapedHandle, shaperClass, rate)...), nil
	case policy.MQPrio:
		if txQueues < q.Classes {
			return nil, fmt.Errorf("mqprio needs a TX queue for each of %d classes, and there are %d", q.Classes, txQueues)
		}
		o := mqprio{classes: q.Classes, classMap: q.Map, queues: spread(txQueues, q.Classes), offload: q.Offload}
		return []node{{kind: "mqprio", handle: rootHandle, parent: rootParent, options: o}}, nil
	case policy.FQ:
		return []node{{kind: "fq", handle: rootHandle, parent: rootParent, options: fqOf(q)}}, nil
	}
	return nil, nil
}

// shaper is the class that holds the whole to the rate of the link.
func shaper(rate uint64) node {
	b := ticks(burst(rate), rate)
	return node{class: true, kind: "htb", handle: shaperClass, parent: rootParent,
		options: htbClass{rate: rate, ceil: rate, burst: b, cburst: b, quantum: quantumBase}}
}

func buildHTB(q plan.Queue, rate uint64) []node {
	nodes := []node{
		{kind: "htb", handle: rootHandle, parent: rootParent, options: htbRoot{q.ClassMinor(int(q.Map[0]), 0)}},
		{class: true, kind: "htb", handle: shaperClass, parent: rootParent, options: shaperOf(q, rate)},
	}
	if q.Weighs {
		nodes[0].sizes = &weighing
	}
	floor := floorRate(rate, q.Leaves())
	for c := range q.Classes {
		for b := range q.Leaves() {
			id := htbClassID(q, c, b)
			nodes = append(nodes,
				node{class: true, kind: "htb", handle: id, parent: shaperClass, options: htbClass{
					rate: floor, ceil: rate,
					burst: ticks(floorBurst, floor), cburst: ticks(burst(rate), rate),
					prio: prioOf(q, c), quantum: quantumOf(q, rate, c, b),
				}},
				leaf(q, leafHandle(q, c, b), id, rate))
		}
	}
	return append(nodes, buildShares(q, rate)...)
}

// prioOf is HTB's prio of plan class c: 0 is the most urgent.
func prioOf(q plan.Queue, c int) uint32 { return uint32(q.Classes - 1 - c) }

// buildBands is prio, or ets with all bands strict; band 0 is the last class.
func buildBands(q plan.Queue, handle, parent uint32, rate uint64) []node {
	var m bandMap
	for p, c := range q.Map {
		m[p] = uint8(q.Classes-1) - c
	}
	top := node{kind: "prio", handle: handle, parent: parent, options: prio{q.Classes, m}}
	if q.Scheduler == policy.ETS {
		top.kind, top.options = "ets", ets{q.Classes, q.Classes, m}
	}
	nodes := []node{top}
	for c := range q.Classes {
		nodes = append(nodes, leaf(q, leafHandle(q, c, 0), bandClass(handle, q.Classes, c), rate))
	}
	return nodes
}

// bandClass is the kernel's class of the band that carries plan class c.
func bandClass(handle uint32, classes, c int) uint32 { return handle | uint32(classes-c) }

func leaf(q plan.Queue, handle, parent uint32, rate uint64) node {
	n := node{kind: string(q.Leaf), handle: handle, parent: parent}
	switch {
	case q.Leaf == plan.LeafFQ:
		n.options = fq{bandMap: fqDefaultMap(), fqRoom: fqTimes()}
	case q.Leaf == plan.LeafFQCodel:
		target, interval := codelTimes(rate)
		n.options = fqCodel{uint32(shown(target)), uint32(shown(interval)), turn(rate)}
	case q.Leaves() > 1:
		n.options = bfifo{bucketLimit(rate)}
	default:
		n.options = bfifo{limit(rate)}
	}
	return n
}
