package tc

import (
	"errors"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What a filter that redirects is made of. u32 is the one classifier with a match of
// all that every kernel with clsact has: matchall came later.
const (
	redirectKind = "u32"
	mirredKind   = "mirred"

	u32Node      = 0xfff // TC_U32_NODE: of a handle, what user space chooses
	ourNode      = ourFilter >> 4
	u32Keys      = 2  // offsetof(struct tc_u32_sel, nkeys)
	u32Key       = 16 // sizeof(struct tc_u32_key), of which the first four bytes are the mask
	mirredSize   = 28 // sizeof(struct tc_mirred); the library has it larger than it is
	mirredAction = 8  // offsetof(struct tc_mirred, action)
	mirredDoes   = 20 // offsetof(struct tc_mirred, eaction)
	mirredTo     = 24 // offsetof(struct tc_mirred, ifindex)
)

// A redirecting is a filter of ours that sends what arrives to another device.
type redirecting struct {
	to    int // the index of that device; 0 where the filter is not Weir's in every part
	entry entry
}

// Redirect sends all that arrives by a link to the queue of another device, by one filter
// behind those that Weir has there; without a device it ends that. Where the device
// changes, the new filter stands before the old one goes. clsact is made if absent, as
// [Attach] does.
func Redirect(link, to int) error {
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.close()
	have, err := c.redirects(link)
	if err != nil {
		return err
	}
	if to != 0 {
		if i := slices.IndexFunc(have, func(f redirecting) bool { return f.to == to }); i >= 0 {
			have = slices.Delete(have, i, i+1)
		} else if err := c.addRedirect(link, to); err != nil {
			return err
		}
	}
	for _, f := range have {
		if err := c.deleteRedirect(link, f.entry); err != nil {
			return kernelError(link, "delete redirect", "", err)
		}
	}
	return nil
}

// ClearRedirect ends what [Redirect] began, and takes clsact away unless keepClsact is set
// or anything is still attached, at either hook.
func ClearRedirect(link int, keepClsact bool) error {
	if err := Redirect(link, 0); err != nil || keepClsact {
		return err
	}
	return clearClsact(link)
}

// redirects reads our filters; none where there is no clsact.
func (c *conn) redirects(link int) ([]redirecting, error) {
	if q, err := c.besideRoot(link); err != nil || q.kind != clsactKind {
		return nil, err
	}
	filters, err := c.filters(link, uint32(Ingress))
	if err != nil {
		return nil, err
	}
	var found []redirecting
	for _, f := range filters {
		if f.kind != redirectKind || f.handle&u32Node != ourNode {
			continue
		}
		to, err := decodeRedirect(f.options)
		if err != nil {
			return nil, refuse(link, ErrDrift, "read redirect: %v", err)
		}
		if f.info&0xffff != ethPAll { // some packets pass it by
			to = 0
		}
		found = append(found, redirecting{to, f})
	}
	return found, nil
}

func (c *conn) addRedirect(link, to int) error {
	if err := c.ensureClsact(link, Ingress); err != nil {
		return err
	}
	filters, err := c.filters(link, uint32(Ingress))
	if err != nil {
		return err
	}
	m := message{typ: unix.RTM_NEWTFILTER, flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL, kind: redirectKind, options: encodeRedirect(to),
		tcm: nl.TcMsg{Ifindex: int32(link), Handle: ourNode, Parent: uint32(Ingress), Info: filters.behind()}}
	if err := c.send(m); err != nil {
		return kernelError(link, "add redirect", "u32 classifier or mirred action", err)
	}
	return nil
}

// deleteRedirect deletes a filter, and what u32 leaves in its place where others have
// filters of that kind on the link: a table without any.
func (c *conn) deleteRedirect(link int, f entry) error {
	if err := c.deleteFilter(link, f); err != nil {
		return err
	}
	filters, err := c.filters(link, f.parent)
	if err != nil {
		return err
	}
	left := false
	for _, other := range filters {
		if other.info == f.info {
			if other.handle&u32Node != 0 {
				return nil // somebody else's, at the same place
			}
			left = true
		}
	}
	if !left {
		return nil
	}
	f.handle = 0 // all of the place
	return c.deleteFilter(link, f)
}

// encodeRedirect is the options of a filter that takes all, and has it sent by a device.
func encodeRedirect(to int) *nl.RtAttr {
	selector := nl.TcU32Sel{Flags: nl.TC_U32_TERMINAL, Nkeys: 1, Keys: []nl.TcU32Key{{}}}
	o := container(0)
	o.AddRtAttr(nl.TCA_U32_SEL, selector.Serialize())
	does := make([]byte, mirredSize)
	native.PutUint32(does[mirredAction:], uint32(netlink.TC_ACT_STOLEN))
	native.PutUint32(does[mirredDoes:], uint32(netlink.TCA_EGRESS_REDIR))
	native.PutUint32(does[mirredTo:], uint32(to))
	addAction(o.AddRtAttr(nl.TCA_U32_ACT, nil), 1, mirredKind).AddRtAttr(nl.TCA_MIRRED_PARMS, does)
	return o
}

// decodeRedirect reads to which device a filter sends; 0 of one that others changed.
func decodeRedirect(options []byte) (to int, err error) {
	takesAll, actions := false, 0
	broken := eachAttr(options, func(typ uint16, v []byte) {
		switch typ {
		case nl.TCA_U32_SEL:
			takesAll = len(v) >= nl.SizeofTcU32Sel+u32Key && v[0]&nl.TC_U32_TERMINAL != 0 && v[u32Keys] == 1 &&
				native.Uint32(v[nl.SizeofTcU32Sel:]) == 0
		case nl.TCA_U32_ACT:
			err = eachAttr(v, func(_ uint16, v []byte) {
				a, e := decodeAction(v)
				actions++
				if to = 0; e == nil && a.kind == mirredKind {
					to, e = decodeMirred(a.options)
				}
				err = errors.Join(err, e)
			})
		}
	})
	if !takesAll || actions != 1 {
		to = 0
	}
	return to, errors.Join(broken, err)
}

// decodeMirred reads the device to which an action hands a packet to be sent, 0 where it
// does anything else.
func decodeMirred(b []byte) (to int, err error) {
	err = eachAttr(b, func(typ uint16, v []byte) {
		if typ == nl.TCA_MIRRED_PARMS && len(v) >= mirredSize && native.Uint32(v[mirredAction:]) == uint32(netlink.TC_ACT_STOLEN) &&
			native.Uint32(v[mirredDoes:]) == uint32(netlink.TCA_EGRESS_REDIR) {
			to = int(native.Uint32(v[mirredTo:]))
		}
	})
	return to, err
}
