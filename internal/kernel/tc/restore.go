package tc

import (
	"bytes"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Restore puts a saved root back in the place of Weir's, or finishes doing so,
// and reads it back. It refuses with [ErrForeign] to touch any third root.
func Restore(link int, s Snapshot) error {
	return settle(link, ErrNoReturn, func() ([]Op, error) { return restoring(link, s) })
}

// restoring are the ops that lead back to a saved root; none where the link
// already is as it was.
func restoring(link int, s Snapshot) ([]Op, error) {
	c, err := dial()
	if err != nil {
		return nil, err
	}
	defer c.close()
	all, err := readEntries(c, link)
	if err != nil {
		return nil, err
	}
	ops, ok := restoreSteps(link, all, s)
	if !ok {
		return nil, refuse(link, ErrForeign, "%s is neither Weir's nor what was saved", all.root())
	}
	return ops, nil
}

// restoreSteps is the pure part; ok is false where a third root is in the way.
func restoreSteps(link int, have entries, s Snapshot) (ops []Op, ok bool) {
	root := have.root()
	ours := root.handle == rootHandle
	switch {
	case len(s.Objects) == 0 && ours:
		return []Op{deleteOp(link, root)}, true
	case len(s.Objects) == 0:
		return nil, true
	case ours && have.replaceable(s.Root.Kind, s.Root.Handle):
		return replayAll(link, s.Objects, unix.NLM_F_CREATE|unix.NLM_F_REPLACE), true
	case ours:
		return append([]Op{deleteOp(link, root)}, replayAll(link, s.Objects, unix.NLM_F_CREATE|unix.NLM_F_EXCL)...), true
	case root.byKernel():
		return replayAll(link, s.Objects, unix.NLM_F_CREATE|unix.NLM_F_EXCL), true
	case root.handle != s.Root.Handle || root.kind != s.Root.Kind:
		return nil, false
	}
	return replayRest(link, have, s.Objects), true
}

func replayAll(link int, objects []Object, rootFlags uint16) []Op {
	var ops []Op
	for i, o := range objects {
		flags := uint16(unix.NLM_F_CREATE | unix.NLM_F_EXCL)
		if i == 0 {
			flags = rootFlags
		}
		ops = append(ops, replayOp(link, o, flags, "put back "))
	}
	return ops
}

// replayRest finishes a restore that was cut short.
func replayRest(link int, have entries, objects []Object) []Op {
	var ops []Op
	for _, o := range objects {
		e, ok := have.find(o.Class, o.Handle)
		switch {
		case !ok:
			ops = append(ops, replayOp(link, o, unix.NLM_F_CREATE|unix.NLM_F_EXCL, "put back "))
		case !bytes.Equal(replayable(e), o.Options):
			ops = append(ops, replayOp(link, o, unix.NLM_F_REPLACE, "change back "))
		}
	}
	return ops
}

func replayOp(link int, o Object, flags uint16, verb string) Op {
	m := message{typ: unix.RTM_NEWQDISC, flags: flags, kind: o.Kind, tcm: nl.TcMsg{Handle: o.Handle, Parent: o.Parent}}
	if o.Class {
		m.typ = unix.RTM_NEWTCLASS
	}
	if len(o.Options) > 0 {
		nested := 0
		if o.Kind == "ets" { // dumped without the flag, but taken only with it
			nested = nestedFlag
		}
		m.options = nl.NewRtAttr(nl.TCA_OPTIONS|nested, o.Options)
	}
	op := newOp(link, m)
	op.doing, op.feature = verb+o.String(), featureOf(o.Kind, o.Class)
	return op
}
