package tc

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"
)

// bfifo is a queue bounded in bytes.
type bfifo struct{ limit uint32 }

func (o bfifo) encode() *nl.RtAttr {
	return nl.NewRtAttr(nl.TCA_OPTIONS, nl.Uint32Attr(o.limit))
}
func (o bfifo) words() []word          { return []word{{"limit", fmt.Sprintf("%db", o.limit)}} }
func (o bfifo) inPlace(optionSet) bool { return true }

func decodeFIFO(b []byte) (optionSet, error) {
	if len(b) < 4 {
		return nil, tooShort("bfifo", b)
	}
	return bfifo{native.Uint32(b)}, nil
}

// fqCodel is a queue that keeps its delay near a target, and in which flows take turns.
// Times are in microseconds, a turn in bytes; the rest is the kernel's default.
type fqCodel struct{ target, interval, quantum uint32 }

func (o fqCodel) encode() *nl.RtAttr {
	a := container(0)
	a.AddRtAttr(nl.TCA_FQ_CODEL_TARGET, nl.Uint32Attr(codelTime(o.target).set()))
	a.AddRtAttr(nl.TCA_FQ_CODEL_INTERVAL, nl.Uint32Attr(codelTime(o.interval).set()))
	a.AddRtAttr(nl.TCA_FQ_CODEL_QUANTUM, nl.Uint32Attr(o.quantum))
	return a
}

func (o fqCodel) words() []word {
	return []word{{"target", fmt.Sprintf("%dus", o.target)}, {"interval", fmt.Sprintf("%dus", o.interval)},
		{"quantum", fmt.Sprintf("%db", o.quantum)}}
}
func (o fqCodel) inPlace(optionSet) bool { return true }

func decodeFQCodel(b []byte) (optionSet, error) {
	var o fqCodel
	err := eachAttr(b, func(typ uint16, v []byte) {
		switch {
		case typ == nl.TCA_FQ_CODEL_TARGET && len(v) >= 4:
			o.target = native.Uint32(v)
		case typ == nl.TCA_FQ_CODEL_INTERVAL && len(v) >= 4:
			o.interval = native.Uint32(v)
		case typ == nl.TCA_FQ_CODEL_QUANTUM && len(v) >= 4:
			o.quantum = native.Uint32(v)
		}
	})
	return o, err
}

// A codelTime is a time in microseconds as the codel family dumps it. The
// kernel keeps units of 1024 ns and rounds down both ways, so what was dumped
// can not be set again as it is: 5000 comes back as 4999, and that as 4998.
type codelTime uint32

// shown is what the kernel dumps after it was given microseconds.
func shown(us uint32) codelTime { return codelTime(uint64(us) * 1000 >> 10 << 10 / 1000) }

// set is what to give the kernel so that it dumps t.
func (t codelTime) set() uint32 {
	units := (uint64(t)*1000 + 1023) >> 10
	return uint32((units<<10 + 999) / 1000)
}
