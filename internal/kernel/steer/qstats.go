package steer

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// Of linux/netdev.h: what newer kernels (6.9) tell of queues by netlink, in the same words
// for all drivers. Those that tell it there do not tell it to ethtool any more.
const (
	netdevFamily  = "netdev"
	netdevVersion = 1
	qstatsGet     = 12 // NETDEV_CMD_QSTATS_GET

	qstatsDevice  = 1 // NETDEV_A_QSTATS_IFINDEX
	qstatsType    = 2 // NETDEV_A_QSTATS_QUEUE_TYPE
	qstatsQueue   = 3 // NETDEV_A_QSTATS_QUEUE_ID
	qstatsScope   = 4 // NETDEV_A_QSTATS_SCOPE
	qstatsPackets = 8 // NETDEV_A_QSTATS_RX_PACKETS
	qstatsBytes   = 9 // NETDEV_A_QSTATS_RX_BYTES

	typeRX   = 0 // NETDEV_QUEUE_TYPE_RX
	perQueue = 1 // NETDEV_QSTATS_SCOPE_QUEUE
)

// genericHead is struct genlmsghdr. That of the library has two bytes less, so that the last
// ones are whatever stands behind it, and this family wants them to be zero.
type genericHead [nl.SizeofGenlmsg]byte

// Len is its length.
func (h genericHead) Len() int { return len(h) }

// Serialize is the header as it is sent.
func (h genericHead) Serialize() []byte { return h[:] }

// queueStats asks the kernel what each RX queue of the device has received; none where it or
// the driver does not tell.
func (d *Device) queueStats() (map[int]plan.Traffic, error) {
	family, err := netlink.GenlFamilyGet(netdevFamily)
	if err != nil {
		return nil, err
	}
	request := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_DUMP)
	request.AddData(genericHead{qstatsGet, netdevVersion})
	request.AddData(nl.NewRtAttr(qstatsDevice, nl.Uint32Attr(uint32(d.Index))))
	request.AddData(nl.NewRtAttr(qstatsScope, nl.Uint32Attr(perQueue)))
	messages, err := dump(request)
	if err != nil {
		return nil, err
	}
	return parseQueueStats(messages)
}

// dump sends a request and reads until the kernel says that this was all. The library's own
// ends with the first message that does not announce others, and this family's never do.
func dump(request *nl.NetlinkRequest) (messages [][]byte, err error) {
	s, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	defer s.Close()
	if err := s.SetReceiveTimeout(&unix.Timeval{Sec: 1}); err != nil { // nobody waits for ever for figures
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	if err := s.Send(request); err != nil {
		return nil, fmt.Errorf("ask netlink: %w", err)
	}
	for {
		some, _, err := s.Receive()
		if err != nil {
			return nil, fmt.Errorf("read netlink: %w", err)
		}
		for _, m := range some {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return messages, nil
			case unix.NLMSG_ERROR:
				return nil, unix.EOPNOTSUPP // of a kernel or driver that does not tell
			}
			messages = append(messages, m.Data)
		}
	}
}

// parseQueueStats reads a message for each queue.
func parseQueueStats(messages [][]byte) (map[int]plan.Traffic, error) {
	found := map[int]plan.Traffic{}
	for _, message := range messages {
		if len(message) < nl.SizeofGenlmsg {
			return nil, fmt.Errorf("queue statistics: a message of %d bytes", len(message))
		}
		attributes, err := nl.ParseRouteAttr(message[nl.SizeofGenlmsg:])
		if err != nil {
			return nil, fmt.Errorf("queue statistics: %w", err)
		}
		has := map[uint16]uint64{}
		for _, a := range attributes {
			switch len(a.Value) { // numbers are as short as they can be
			case 4:
				has[a.Attr.Type] = uint64(binary.NativeEndian.Uint32(a.Value))
			case 8:
				has[a.Attr.Type] = binary.NativeEndian.Uint64(a.Value)
			}
		}
		kind, typed := has[qstatsType]
		queue, numbered := has[qstatsQueue]
		packets, counted := has[qstatsPackets]
		if typed && kind == typeRX && numbered && counted {
			found[int(queue)] = plan.Traffic{Packets: packets, Bytes: has[qstatsBytes]}
		}
	}
	return found, nil
}
