package tc

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"

	"github.com/weir-net/weir/internal/plan"
)

// A Snapshot is a root qdisc with all that hangs from it, as the kernel dumped
// it. It is plain data, made to be kept as JSON.
type Snapshot struct {
	Root    plan.Qdisc `json:"root"`
	Objects []Object   `json:"objects,omitempty"` // parents first; none where the root is the kernel's own
}

// An Object is one qdisc or class of a snapshot.
type Object struct {
	Class   bool   `json:"class,omitempty"`
	Kind    string `json:"kind"`
	Handle  uint32 `json:"handle"`
	Parent  uint32 `json:"parent"`
	Options []byte `json:"options,omitempty"` // payload of TCA_OPTIONS, such that the kernel dumps the same again
}

// String is kind, handle and place, as tc writes them.
func (o Object) String() string { return objectString(o.Class, o.Kind, o.Handle, o.Parent) }

// Save reads the root of a link so that [Restore] can put it back. It refuses
// with [ErrNoReturn] what could not be put back exactly as it is, and says why.
func Save(link int) (Snapshot, error) {
	c, err := dial()
	if err != nil {
		return Snapshot{}, err
	}
	defer c.close()
	all, err := readEntries(c, link)
	if err != nil {
		return Snapshot{}, err
	}
	if all.root().handle == rootHandle {
		return Snapshot{}, refuse(link, ErrNoReturn, "%s is Weir's own", all.root())
	}
	s, err := snapshot(all)
	if err != nil {
		return Snapshot{}, refuse(link, ErrNoReturn, "%v", err)
	}
	return s, c.refuseFilters(link, s)
}

// snapshot is the pure part of Save.
func snapshot(all entries) (Snapshot, error) {
	root := all.root()
	s := Snapshot{Root: root.qdisc()}
	if root.byKernel() {
		return s, nil // deleting ours brings back what the kernel puts there by then
	}
	var left []Object
	for _, e := range all {
		if e.besideRoot() || e.isClass() && !keepsClasses(e.kind) || e.isQdisc() && e.byKernel() {
			continue
		}
		if err := e.returnable(); err != nil {
			return Snapshot{}, err
		}
		left = append(left, Object{e.isClass(), e.kind, e.handle, e.parent, replayable(e)})
	}
	var err error
	s.Objects, err = parentsFirst(left)
	return s, err
}

// returnable says why an entry can not be put back from its dump.
func (e entry) returnable() error {
	switch {
	case e.isQdisc() && !replays(e.kind):
		return fmt.Errorf("%s can not be put back: not all of it is in the kernel's dump", e)
	case e.offloaded || offloadRequested(e):
		return fmt.Errorf("%s is offloaded to the device", e)
	case e.sizeTable != nil:
		return fmt.Errorf("%s has a size table (stab), which the kernel does not give back", e)
	case e.estimator:
		return fmt.Errorf("%s has a rate estimator, whose settings the kernel does not give back", e)
	}
	return nil
}

// replays lists the kinds whose dump, given back, was shown to make the same
// qdisc again. Not among them: netem (its distributions are not dumped), red
// and its kin (nor are their tables), hfsc, qfq, drr and others nobody tried.
func replays(kind string) bool {
	switch kind {
	case "htb", "prio", "ets", "mq", "mqprio", "tbf", "pfifo", "bfifo", "pfifo_fast", "pfifo_head_drop",
		"fq", "fq_codel", "codel", "sfq", "cake", "noqueue":
		return true
	}
	return false
}

// keepsClasses: of the kinds that replay, only HTB's classes are made by hand.
func keepsClasses(kind string) bool { return kind == "htb" }

func offloadRequested(e entry) bool {
	if e.kind == "mqprio" && e.isQdisc() {
		o, err := decodeMQPrio(e.options)
		return err != nil || o.(mqprio).offload
	}
	const htbOffload = 9 // TCA_HTB_OFFLOAD
	found := false
	if e.kind == "htb" && e.isQdisc() {
		_ = eachAttr(e.options, func(typ uint16, _ []byte) { found = found || typ == htbOffload }) // decode reports what is malformed
	}
	return found
}

// parentsFirst orders objects so that each can be added after those before it.
func parentsFirst(left []Object) ([]Object, error) {
	classes, done := map[uint32]bool{}, map[id]bool{}
	for _, o := range left {
		if o.Class {
			classes[o.Handle] = true
		}
	}
	ready := func(o Object) bool {
		if o.Class && !done[id{false, major(o.Handle)}] {
			return false
		}
		if o.Parent == rootParent {
			return true
		}
		return done[id{false, major(o.Parent)}] && (!classes[o.Parent] || done[id{true, o.Parent}])
	}
	var out []Object
	for len(left) > 0 {
		var rest []Object
		for _, o := range left {
			if ready(o) {
				out = append(out, o)
				done[id{o.Class, o.Handle}] = true
			} else {
				rest = append(rest, o)
			}
		}
		if len(rest) == len(left) {
			return nil, fmt.Errorf("%s hangs from nothing", rest[0])
		}
		left = rest
	}
	return out, nil
}

// refuseFilters refuses a snapshot to whose qdiscs or classes filters are
// attached: they are not in it.
func (c *conn) refuseFilters(link int, s Snapshot) error {
	for _, o := range s.Objects {
		f, err := c.filters(link, o.Handle)
		if err != nil {
			return err
		}
		if len(f) > 0 {
			return refuse(link, ErrNoReturn, "%s has filters attached", o)
		}
	}
	return nil
}

// replayable is the options of an entry as the kernel has to be told them so
// that it dumps them again.
func replayable(e entry) []byte {
	b := append([]byte(nil), e.options...)
	var times []uint16
	switch {
	case e.isClass():
		return b
	case e.kind == "htb":
		_ = eachAttr(b, func(typ uint16, v []byte) { // v lies in b
			if typ == nl.TCA_HTB_INIT && len(v) >= htbGlobSize {
				native.PutUint32(v, htbVersion) // dumped with its minor number, which is refused
				clear(v[htbGlobSize-4:])        // direct_pkts is a counter
			}
		})
	case e.kind == "mqprio" && len(b) > mqprioSize:
		return b[:mqprioSize] // 6.4 and later dump attributes here that they take only with hw 1
	case e.kind == "fq_codel":
		const ceThreshold = 7
		times = []uint16{nl.TCA_FQ_CODEL_TARGET, nl.TCA_FQ_CODEL_INTERVAL, ceThreshold}
	case e.kind == "codel":
		const target, interval, ceThreshold = 1, 3, 5
		times = []uint16{target, interval, ceThreshold}
	}
	for _, t := range times {
		_ = eachAttr(b, func(typ uint16, v []byte) {
			if typ == t && len(v) >= 4 {
				native.PutUint32(v, codelTime(native.Uint32(v)).set())
			}
		})
	}
	return b
}
