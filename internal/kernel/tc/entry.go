package tc

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// An entry is a qdisc, class or filter as the kernel dumps it.
type entry struct {
	what           uint16 // RTM_NEWQDISC, RTM_NEWTCLASS or RTM_NEWTFILTER
	kind           string
	handle, parent uint32
	info           uint32 // of a filter: its priority and protocol
	options        []byte // payload of TCA_OPTIONS
	offloaded      bool
	sizeTable      []byte // payload of TCA_STAB
	estimator      bool   // measures its rate
	block          bool   // shares its filters with other links
	stats          stats
}

func (e entry) isQdisc() bool { return e.what == unix.RTM_NEWQDISC }
func (e entry) isClass() bool { return e.what == unix.RTM_NEWTCLASS }

// besideRoot reports that the entry is the clsact or ingress qdisc, which share
// a place of their own and queue nothing.
func (e entry) besideRoot() bool { return e.isQdisc() && e.parent == clsactParent }

func (e entry) String() string { return objectString(e.isClass(), e.kind, e.handle, e.parent) }

func objectString(class bool, kind string, handle, parent uint32) string {
	where := "at " + handleString(parent)
	if parent == rootParent {
		where = "at the root"
	}
	if !class {
		return fmt.Sprintf("%s qdisc %s %s", kind, handleString(handle), where)
	}
	return fmt.Sprintf("%s class %s %s", kind, handleString(handle), where)
}

func parseEntries(link int, what uint16, raw [][]byte) (entries, error) {
	var out entries
	for _, m := range raw {
		if len(m) < nl.SizeofTcMsg {
			return nil, fmt.Errorf("parse traffic control message: %d bytes are too few", len(m))
		}
		tcm := nl.DeserializeTcMsg(m)
		if int(tcm.Ifindex) != link {
			continue
		}
		e := entry{what: what, handle: tcm.Handle, parent: tcm.Parent, info: tcm.Info}
		err := eachAttr(m[nl.SizeofTcMsg:], func(typ uint16, v []byte) {
			switch typ {
			case nl.TCA_KIND:
				e.kind = strings.TrimRight(string(v), "\x00")
			case nl.TCA_OPTIONS:
				e.options = v
			case nl.TCA_STAB:
				e.sizeTable = v
			case nl.TCA_HW_OFFLOAD:
				e.offloaded = len(v) > 0 && v[0] != 0
			case nl.TCA_INGRESS_BLOCK, nl.TCA_EGRESS_BLOCK:
				e.block = true
			case nl.TCA_STATS2:
				e.stats, e.estimator = parseStats(v)
			}
		})
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// entries is everything about the egress of one link, clsact included.
type entries []entry

// readEntries dumps the qdiscs and classes of a link.
func readEntries(c *conn, link int) (entries, error) {
	all, err := c.qdiscs(link)
	if err != nil {
		return nil, err
	}
	classes, err := c.dump(link, unix.RTM_GETTCLASS, unix.RTM_NEWTCLASS, 0)
	if err != nil {
		return nil, kernelError(link, "read classes", "", err)
	}
	if all = append(all, classes...); len(all) == 0 { // as for a link that is not there
		if _, err := netlink.LinkByIndex(link); err != nil {
			return nil, refuse(link, ErrNoLink, "%v", ErrNoLink)
		}
	}
	return all, nil
}

// root is the entry at the root. A link that was never up has noop there, which
// the kernel does not show.
func (all entries) root() entry {
	for _, e := range all {
		if e.isQdisc() && e.parent == rootParent {
			return e
		}
	}
	return entry{what: unix.RTM_NEWQDISC, kind: "noop", parent: rootParent}
}

func (all entries) find(class bool, handle uint32) (entry, bool) {
	for _, e := range all {
		if e.isClass() == class && e.handle == handle && !e.besideRoot() {
			return e, true
		}
	}
	return entry{}, false
}

// byKernel reports that the kernel put the qdisc there by itself: only then it
// has no handle, even user space that names none is given one.
func (e entry) byKernel() bool { return e.handle == 0 }

func (e entry) qdisc() plan.Qdisc {
	return plan.Qdisc{Kind: e.kind, Handle: e.handle, Default: e.byKernel()}
}
