package tc

import (
	"cmp"
	"errors"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// An Op is one netlink message that changes the queueing of a link: the
// smallest thing that can happen or not happen. Running it twice may fail,
// planning again after it never does.
type Op struct {
	link    int
	doing   string
	feature string // what a kernel that does not take the message lacks; may be empty
	message message
	removes bool // that there is nothing to remove is success
	offload bool // asks the device's hardware
}

// String says what the op does, in words: "add bfifo qdisc 7e32: at 7e1f:12
// (limit 250000b)".
func (o Op) String() string { return o.doing }

// Run sends the message in the network namespace of the calling thread.
func (o Op) Run() error {
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.close()
	err = c.send(o.message)
	switch tcm := o.message.tcm; {
	case err == nil:
		return nil
	case o.removes && c.lacks(o.link, cmp.Or(tcm.Handle, tcm.Parent)):
		return nil
	case o.offload:
		return offloadError(o.link, o.feature, err)
	case errors.Is(err, unix.ENOENT) && tcm.Parent != rootParent && c.lacks(o.link, tcm.Parent):
		return kernelError(o.link, o.doing, "", err) // it is the parent that is not there, not the kind
	}
	return kernelError(o.link, o.doing, o.feature, err)
}

// lacks reports that the link has no qdisc or class of a handle. The kernel's
// errno alone does not tell: it says EINVAL of a root that is another by now.
func (c *conn) lacks(link int, handle uint32) bool {
	all, err := readEntries(c, link)
	_, there := all.find(minor(handle) != 0, handle)
	return err == nil && !there
}

func newOp(link int, m message) Op {
	m.tcm.Ifindex = int32(link)
	return Op{link: link, message: m}
}

// addOp adds a node. Only with replace it takes the place of a qdisc that
// somebody else put there since we looked.
func addOp(link int, n node, replace bool) Op {
	flags := uint16(unix.NLM_F_CREATE | unix.NLM_F_EXCL)
	verb := "add "
	if replace {
		flags, verb = unix.NLM_F_CREATE|unix.NLM_F_REPLACE, "replace the root by "
	}
	o := newOp(link, n.message(n.newType(), flags))
	o.doing = verb + n.String() + settings(n)
	o.feature = featureOf(n.kind, n.class)
	if mq, ok := n.options.(mqprio); ok {
		o.offload = mq.offload
	}
	return o
}

// changeOp changes a node in its place; differs says what.
func changeOp(link int, n node, differs string) Op {
	o := newOp(link, n.message(n.newType(), unix.NLM_F_REPLACE))
	o.doing = "change " + n.String() + ": " + differs
	return o
}

func deleteOp(link int, e entry) Op {
	typ := uint16(unix.RTM_DELQDISC)
	if e.isClass() {
		typ = unix.RTM_DELTCLASS
	}
	o := newOp(link, message{typ: typ, tcm: nl.TcMsg{Handle: e.handle, Parent: e.parent}})
	o.doing, o.removes = "delete "+e.String(), true
	return o
}

// flushOp removes all filters that are attached to one of our objects.
func flushOp(link int, parent uint32) Op {
	o := newOp(link, message{typ: unix.RTM_DELTFILTER, tcm: nl.TcMsg{Parent: parent}})
	o.doing, o.removes = "delete the filters of "+handleString(parent), true
	return o
}

func settings(n node) string {
	if w := n.options.words(); len(w) > 0 {
		return " (" + wordString(w) + ")"
	}
	return ""
}

func featureOf(kind string, class bool) string {
	if class {
		return ""
	}
	return kind + " qdisc"
}
