package tc

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
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
}

func (c *conn) send(m message) error {
	req := c.request(int(m.typ), int(m.flags)|unix.NLM_F_ACK, m.tcm)
	if m.kind != "" {
		req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(m.kind)))
	}
	if m.options != nil {
		req.AddData(m.options)
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

// dump asks for all objects of a kind of message and keeps those of the link:
// the kernel gives the qdiscs of all links, whatever was asked for. A dump that
// a change ran through is made again.
func (c *conn) dump(link int, get, answer uint16, parent uint32) ([]entry, error) {
	const attempts = 10
	var err error
	for range attempts {
		var raw [][]byte
		raw, err = c.request(int(get), unix.NLM_F_DUMP, nl.TcMsg{Ifindex: int32(link), Parent: parent}).
			Execute(unix.NETLINK_ROUTE, answer)
		if errors.Is(err, netlink.ErrDumpInterrupted) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return parseEntries(link, answer, raw)
	}
	return nil, err
}
