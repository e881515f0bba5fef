package tc

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// A conn is a netlink socket in the namespace of the thread that dialled it,
// with the kernel's own words about errors switched on. (The package's shared
// handle has them only behind a global variable.)
type conn struct{ socket *nl.SocketHandle }

func dial() (*conn, error) {
	s, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink socket: %w", err)
	}
	c := &conn{&nl.SocketHandle{Socket: s}}
	timeout := unix.Timeval{Sec: 30} // a module that is loaded on demand may take a while
	err = errors.Join(s.SetExtAck(true), s.SetSendTimeout(&timeout), s.SetReceiveTimeout(&timeout))
	if err != nil {
		c.close()
		return nil, fmt.Errorf("set up netlink socket: %w", err)
	}
	return c, nil
}

func (c *conn) close() { c.socket.Close() }

// A message is one traffic control request: what to do with which object.
type message struct {
	typ, flags uint16
	tcm        nl.TcMsg
	kind       string
	options    *nl.RtAttr // whole TCA_OPTIONS attribute, or nil
	sizes      *nl.RtAttr // whole TCA_STAB attribute, or nil
}

func (c *conn) send(m message) error {
	req := c.request(int(m.typ), int(m.flags)|unix.NLM_F_ACK, m.tcm)
	if m.kind != "" {
		req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(m.kind)))
	}
	if m.options != nil {
		req.AddData(m.options)
	}
	if m.sizes != nil {
		req.AddData(m.sizes)
	}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

func (c *conn) request(typ, flags int, tcm nl.TcMsg) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(typ, flags)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: c.socket}
	tcm.Family = unix.AF_UNSPEC
	req.AddData(&tcm)
	return req
}

// dump asks for all objects of a kind of message and keeps those of the link.
func (c *conn) dump(link int, get, answer uint16, parent uint32) (entries, error) {
	raw, err := c.request(int(get), unix.NLM_F_DUMP, nl.TcMsg{Ifindex: int32(link), Parent: parent}).
		Execute(unix.NETLINK_ROUTE, answer)
	if err != nil {
		return nil, err
	}
	return parseEntries(link, answer, raw)
}

// qdiscs dumps the qdiscs of a link.
func (c *conn) qdiscs(link int) (entries, error) {
	all, err := steady(func() (entries, error) { return c.dump(link, unix.RTM_GETQDISC, unix.RTM_NEWQDISC, 0) })
	if err != nil {
		return nil, kernelError(link, "read qdiscs", "", err)
	}
	return all, nil
}

// steady repeats a dump until two in a row name the same objects. The kernel
// dumps the qdiscs of all links, whatever link was asked for, and (in 6.18 still,
// in 7.3 no more) finds its place again by counting links: where one goes away
// between two messages, it passes over qdiscs of those behind. It never says so:
// no dump of traffic control carries NLM_F_DUMP_INTR.
func steady(dump func() (entries, error)) (entries, error) {
	const attempts = 10
	var last entries
	for attempt := range attempts {
		next, err := dump()
		if err != nil {
			return nil, err
		}
		if attempt > 0 && sameObjects(last, next) {
			return next, nil
		}
		last = next
	}
	return nil, errors.New("they change faster than they can be read")
}

func sameObjects(a, b entries) bool {
	return slices.EqualFunc(a, b, func(a, b entry) bool {
		return a.kind == b.kind && a.handle == b.handle && a.parent == b.parent
	})
}
