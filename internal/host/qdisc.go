package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// A root is the root qdisc of a device and the number of queues below it, 0
// where the qdisc does not tell.
type root struct {
	qdisc  plan.Qdisc
	queues int
}

// roots reads the root qdiscs of all devices of the current namespace by
// their index. It decodes the kind and no options: a qdisc with options that
// nobody here knows must not hide the others.
func roots() (map[int]root, error) {
	var msgs [][]byte
	err := undisturbed(func() (err error) {
		req := nl.NewNetlinkRequest(unix.RTM_GETQDISC, unix.NLM_F_DUMP)
		req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL})
		msgs, err = req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list qdiscs: %w", err)
	}
	found := map[int]root{}
	children := map[[2]uint32]int{} // device, parent's major -> children
	for _, m := range msgs {
		msg := nl.DeserializeTcMsg(m)
		if msg.Parent != netlink.HANDLE_ROOT {
			children[[2]uint32{uint32(msg.Ifindex), msg.Parent >> 16}]++
			continue
		}
		kind, err := kindOf(m[msg.Len():])
		if err != nil {
			return nil, fmt.Errorf("decode qdisc of device %d: %w", msg.Ifindex, err)
		}
		// tc never leaves the handle 0; only the kernel's own choice has it.
		found[int(msg.Ifindex)] = root{qdisc: plan.Qdisc{Kind: kind, Handle: msg.Handle, Default: msg.Handle == 0}}
	}
	for index, r := range found {
		if r.qdisc.Kind == "mq" || r.qdisc.Kind == "mqprio" {
			r.queues = children[[2]uint32{uint32(index), r.qdisc.Handle >> 16}]
			found[index] = r
		}
	}
	return found, nil
}

func kindOf(attributes []byte) (string, error) {
	attrs, err := nl.ParseRouteAttr(attributes)
	if err != nil {
		return "", err
	}
	for _, a := range attrs {
		if a.Attr.Type == nl.TCA_KIND {
			return strings.TrimRight(string(a.Value), "\x00"), nil
		}
	}
	return "", errors.New("it has no kind")
}
