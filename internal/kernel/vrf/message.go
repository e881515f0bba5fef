package vrf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A message is what the kernel says of an address, a route, a neighbour or a rule: the
// fixed header and its attributes. It is kept as it came, so that what this package does
// not know of is put back as well.
type message struct {
	head  []byte
	attrs []attr
}

type attr struct {
	kind  uint16
	value []byte
}

var native = binary.NativeEndian

// flagsOfKind are the bits of an attribute's kind that say how it is encoded.
const flagsOfKind = unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER

// parse takes a message apart; head is the size of its fixed header.
func parse(raw []byte, head int) (m message, err error) {
	if len(raw) < head {
		return m, errors.New("a message of the kernel is too short")
	}
	m.head = append([]byte(nil), raw[:head]...)
	attrs, err := nl.ParseRouteAttr(raw[head:])
	if err != nil {
		return m, fmt.Errorf("read a message of the kernel: %w", err)
	}
	for _, a := range attrs {
		m.attrs = append(m.attrs, attr{a.Attr.Type, append([]byte(nil), a.Value...)})
	}
	return m, nil
}

// bytes puts a message together.
func (m message) bytes() []byte {
	out := append([]byte(nil), m.head...)
	for _, a := range m.attrs {
		out = native.AppendUint16(out, uint16(4+len(a.value)))
		out = native.AppendUint16(out, a.kind)
		out = append(out, a.value...)
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	}
	return out
}

// get returns the value of an attribute, nil if it is not there.
func (m message) get(kind uint16) []byte {
	for _, a := range m.attrs {
		if a.kind&^flagsOfKind == kind {
			return a.value
		}
	}
	return nil
}

func (m message) number(kind uint16) (n uint32, ok bool) {
	v := m.get(kind)
	if len(v) != 4 {
		return 0, false
	}
	return native.Uint32(v), true
}

// without returns the message without some attributes.
func (m message) without(kinds ...uint16) message {
	out := message{head: append([]byte(nil), m.head...)}
next:
	for _, a := range m.attrs {
		for _, k := range kinds {
			if a.kind&^flagsOfKind == k {
				continue next
			}
		}
		out.attrs = append(out.attrs, a)
	}
	return out
}

func (m *message) add(kind uint16, value []byte) { m.attrs = append(m.attrs, attr{kind, value}) }

func (m *message) addNumber(kind uint16, n uint32) {
	m.add(kind, native.AppendUint32(nil, n))
}

// dump asks for all of a kind.
func dump(request uint16, answer uint16, ask []byte, head int) (all []message, err error) {
	raw, err := undisturbed(func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(int(request), unix.NLM_F_DUMP)
		req.AddRawData(ask)
		return req.Execute(unix.NETLINK_ROUTE, answer)
	})
	if err != nil {
		return nil, err
	}
	for _, b := range raw {
		m, err := parse(b, head)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// send asks for a change. Some errors are none: what is there already when it is added, and
// what is gone already when it is deleted.
func send(request uint16, flags int, m message, fine ...error) error {
	req := nl.NewNetlinkRequest(int(request), flags|unix.NLM_F_ACK)
	req.AddRawData(m.bytes())
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	for _, f := range fine {
		if errors.Is(err, f) {
			return nil
		}
	}
	return err
}
