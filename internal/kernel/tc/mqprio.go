package tc

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"

	"github.com/weir-net/weir/internal/policy"
)

// A queueRange is the TX queues of one traffic class.
type queueRange struct{ count, offset uint16 }

// mqprio is an mqprio qdisc. Plan class c is traffic class c: the higher number
// is the more urgent, as in DCB and in what taprio's man page came to say in
// 6.3 (the igb/igc hardware, whose queue 0 is the most urgent, is the exception
// that its drivers turn round themselves).
type mqprio struct {
	classes  int
	classMap [policy.Levels]uint8
	queues   [policy.Levels]queueRange
	offload  bool
}

// struct tc_mqprio_qopt: num_tc, prio_tc_map[16], hw, count[16], offset[16].
const (
	mqprioMapAt    = 1
	mqprioHWAt     = mqprioMapAt + policy.Levels
	mqprioCountAt  = mqprioHWAt + 1
	mqprioOffsetAt = mqprioCountAt + 2*policy.Levels
	mqprioSize     = mqprioOffsetAt + 2*policy.Levels
)

func (o mqprio) encode() *nl.RtAttr {
	b := make([]byte, mqprioSize)
	b[0] = uint8(o.classes)
	copy(b[mqprioMapAt:], o.classMap[:])
	if o.offload {
		b[mqprioHWAt] = 1
	}
	for i, q := range o.queues {
		native.PutUint16(b[mqprioCountAt+2*i:], q.count)
		native.PutUint16(b[mqprioOffsetAt+2*i:], q.offset)
	}
	return nl.NewRtAttr(nl.TCA_OPTIONS, b)
}

func (o mqprio) words() []word {
	queues := ""
	for _, q := range o.queues[:o.classes] {
		queues += fmt.Sprintf("(%d@%d)", q.count, q.offset)
	}
	hw := "0"
	if o.offload {
		hw = "1"
	}
	return []word{{"classes", fmt.Sprint(o.classes)}, {"map", mapString(o.classMap[:])}, {"queues", queues}, {"hw", hw}}
}

// inPlace: mqprio has no change operation.
func (o mqprio) inPlace(optionSet) bool { return false }

func (o mqprio) queueCount() int {
	n := 0
	for _, q := range o.queues[:o.classes] {
		n = max(n, int(q.offset)+int(q.count))
	}
	return n
}

// decodeMQPrio reads the mode of an offload (TCA_MQPRIO_MODE and on) as the hw
// byte alone, which is all that Weir asks for.
func decodeMQPrio(b []byte) (optionSet, error) {
	if len(b) < mqprioSize {
		return nil, tooShort("mqprio", b)
	}
	o := mqprio{classes: min(int(b[0]), policy.Levels), offload: b[mqprioHWAt] != 0}
	copy(o.classMap[:], b[mqprioMapAt:])
	for i := range o.queues {
		o.queues[i] = queueRange{native.Uint16(b[mqprioCountAt+2*i:]), native.Uint16(b[mqprioOffsetAt+2*i:])}
	}
	return o, nil
}

// spread gives each class its queues, in order and without gaps. What does not
// divide goes to the least urgent classes: bulk has the most flows.
func spread(queues, classes int) (out [policy.Levels]queueRange) {
	at := 0
	for c := range classes {
		n := queues / classes
		if c < queues%classes {
			n++
		}
		out[c] = queueRange{uint16(n), uint16(at)}
		at += n
	}
	return out
}
