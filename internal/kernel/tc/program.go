package tc

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A Hook is the place of a link where a BPF program runs, as the kernel names it:
// by the parent of its filters, which are clsact's.
type Hook uint32

const (
	Egress  Hook = netlink.HANDLE_MIN_EGRESS  // before the link's queue
	Ingress Hook = netlink.HANDLE_MIN_INGRESS // before the host's own stack
)

// String is the direction, as tc calls it.
func (h Hook) String() string {
	if h == Ingress {
		return "ingress"
	}
	return "egress"
}

// A Program is the BPF program of ours at a hook of a link, for kernels that have
// no tcx.
type Program struct {
	ID       uint32 // of the BPF program; 0: none of ours is attached
	Name     string
	Priority uint16 // of the filter; below ours run first
}

const (
	clsactKind = "clsact"
	ourFilter  = 0x7e1f // the handle of our filter at either hook, by which it is known
)

// ethPAll in network byte order, as tcm_info has it.
var ethPAll = uint32(native.Uint16([]byte{0, unix.ETH_P_ALL}))

// HasClsact reports whether the link has a clsact qdisc, whoever made it: for
// callers that take away on detach only what they brought.
func HasClsact(link int) (bool, error) {
	c, err := dial()
	if err != nil {
		return false, err
	}
	defer c.close()
	q, err := c.besideRoot(link)
	return q.kind == clsactKind, err
}

// Attach runs a BPF program (direct action) on every packet that passes the hook:
// as the first filter, where that place is free. A filter that says "ok" ends the
// run, so any later place could be passed by; the program returns TC_ACT_UNSPEC to
// let the others have their turn. A program of ours that is attached already is
// replaced in one step. clsact, which carries the filters of both hooks, is made
// if absent; an ingress qdisc in its place is an error that wraps
// [ErrUnsupported], whichever hook it is.
func Attach(link int, hook Hook, progFD int, name string) error {
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.ensureClsact(link, hook); err != nil {
		return err
	}
	filters, err := c.filters(link, uint32(hook))
	if err != nil {
		return err
	}
	o := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	o.AddRtAttr(nl.TCA_BPF_FD, nl.Uint32Attr(uint32(progFD)))
	o.AddRtAttr(nl.TCA_BPF_NAME, nl.ZeroTerminated(name))
	o.AddRtAttr(nl.TCA_BPF_FLAGS, nl.Uint32Attr(nl.TCA_BPF_FLAG_ACT_DIRECT))
	m := message{typ: unix.RTM_NEWTFILTER, flags: unix.NLM_F_CREATE, kind: "bpf", options: o,
		tcm: nl.TcMsg{Ifindex: int32(link), Handle: ourFilter, Parent: uint32(hook), Info: filters.place()}}
	if err := c.send(m); err != nil {
		return kernelError(link, fmt.Sprintf("attach %s program", hook), "bpf classifier", err)
	}
	return nil
}

// ensureClsact makes the clsact qdisc unless it is there. It has to look at
// what is there: an ingress qdisc takes filters of both hooks, and runs all of
// them on what comes in.
func (c *conn) ensureClsact(link int, hook Hook) error {
	q, err := c.besideRoot(link)
	if err == nil && q.kind == "" {
		err = c.send(message{typ: unix.RTM_NEWQDISC, flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL, kind: clsactKind,
			tcm: nl.TcMsg{Ifindex: int32(link), Handle: clsactHandle, Parent: clsactParent}})
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return kernelError(link, "add clsact qdisc", "clsact qdisc", err)
		}
		q, err = c.besideRoot(link) // somebody else may have been faster
	}
	if err == nil && q.kind != clsactKind {
		return refuse(link, ErrUnsupported, "attach %s program: an %s qdisc is where clsact has to be; clsact can carry its filters too", hook, q.kind)
	}
	return err
}

// place is priority and protocol of our filter: those that it has, or the
// first priority that no filter of another kind or protocol holds.
func (filters entries) place() uint32 {
	if f, ok := filters.ours(); ok {
		return f.info
	}
	for priority := uint32(1); ; priority++ {
		free := true
		for _, f := range filters {
			taken := f.info>>16 == priority && (f.kind != "bpf" || f.info&0xffff != ethPAll)
			free = free && !taken
		}
		if free {
			return priority<<16 | ethPAll
		}
	}
}

func (filters entries) ours() (entry, bool) {
	for _, f := range filters {
		if f.kind == "bpf" && f.handle == ourFilter {
			return f, true
		}
	}
	return entry{}, false
}

// ReadProgram says which program of ours is attached to the hook; the zero
// Program is none.
func ReadProgram(link int, hook Hook) (Program, error) {
	c, err := dial()
	if err != nil {
		return Program{}, err
	}
	defer c.close()
	var p Program
	if q, err := c.besideRoot(link); err != nil || q.kind != clsactKind {
		return p, err
	}
	filters, err := c.filters(link, uint32(hook))
	if err != nil {
		return p, err
	}
	f, ok := filters.ours()
	if !ok {
		return p, nil
	}
	p.Priority = uint16(f.info >> 16)
	err = eachAttr(f.options, func(typ uint16, v []byte) {
		switch {
		case typ == nl.TCA_BPF_ID && len(v) >= 4:
			p.ID = native.Uint32(v)
		case typ == nl.TCA_BPF_NAME && len(v) > 0:
			p.Name = string(v[:len(v)-1])
		}
	})
	return p, err
}

// Detach removes our program from the hook, and clsact with it unless keepClsact
// is set or anything is still attached, at either hook.
func Detach(link int, hook Hook, keepClsact bool) error {
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.close()
	qdisc, err := c.besideRoot(link)
	if err != nil || qdisc.kind != clsactKind {
		return err
	}
	filters, err := c.filters(link, uint32(hook))
	if err != nil {
		return err
	}
	if f, ok := filters.ours(); ok {
		if err := c.deleteFilter(link, f); err != nil {
			return kernelError(link, fmt.Sprintf("detach %s program", hook), "", err)
		}
	}
	if keepClsact {
		return nil
	}
	return c.dropClsact(link, qdisc)
}

// deleteFilter deletes a filter; one that is gone is fine.
func (c *conn) deleteFilter(link int, f entry) error {
	err := c.send(message{typ: unix.RTM_DELTFILTER, kind: f.kind,
		tcm: nl.TcMsg{Ifindex: int32(link), Handle: f.handle, Parent: f.parent, Info: f.info}})
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// clearClsact takes clsact away unless anything is still attached, at either hook.
func clearClsact(link int) error {
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.close()
	qdisc, err := c.besideRoot(link)
	if err != nil || qdisc.kind != clsactKind {
		return err
	}
	return c.dropClsact(link, qdisc)
}

// dropClsact deletes the clsact qdisc unless it carries filters, or shares them with
// other links.
func (c *conn) dropClsact(link int, qdisc entry) error {
	if qdisc.block {
		return nil
	}
	for _, hook := range []Hook{Egress, Ingress} {
		if left, err := c.filters(link, uint32(hook)); err != nil || len(left) > 0 {
			return err
		}
	}
	err := c.send(message{typ: unix.RTM_DELQDISC, tcm: nl.TcMsg{Ifindex: int32(link), Handle: clsactHandle, Parent: clsactParent}})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return kernelError(link, "delete clsact qdisc", "", err)
	}
	return nil
}

// besideRoot finds the clsact or ingress qdisc of the link; its kind is empty
// where there is none.
func (c *conn) besideRoot(link int) (entry, error) {
	all, err := c.qdiscs(link)
	if err != nil {
		return entry{}, err
	}
	for _, e := range all {
		if e.besideRoot() {
			return e, nil
		}
	}
	return entry{}, nil
}
