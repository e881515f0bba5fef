package tc

import (
	"fmt"
	"math"

	"github.com/vishvananda/netlink/nl"
)

// htbRoot is an HTB qdisc.
type htbRoot struct {
	class uint32 // minor number of the class for packets that name none
}

const (
	htbVersion     = 3  // HTB_VER >> 16, the only one that the kernel takes
	rateToQuantum  = 10 // tc's default; without effect, as every class has its own quantum
	htbGlobSize    = nl.SizeofTcHtbGlob
	linklayerEther = nl.LINKLAYER_ETHERNET // without one the kernel asks for a rate table of 1 KiB
)

func (o htbRoot) encode() *nl.RtAttr {
	a := container(0)
	a.AddRtAttr(nl.TCA_HTB_INIT, (&nl.TcHtbGlob{Version: htbVersion, Rate2Quantum: rateToQuantum, Defcls: o.class}).Serialize())
	return a
}

func (o htbRoot) words() []word { return []word{{"default", fmt.Sprintf("0x%x", o.class)}} }

// inPlace: HTB has no change operation.
func (o htbRoot) inPlace(optionSet) bool { return false }

func decodeHTB(b []byte) (optionSet, error) {
	var o htbRoot
	var err = tooShort("htb", b)
	if e := eachAttr(b, func(typ uint16, v []byte) {
		if typ == nl.TCA_HTB_INIT && len(v) >= htbGlobSize {
			o.class, err = nl.DeserializeTcHtbGlob(v).Defcls, nil
		}
	}); e != nil {
		return nil, e
	}
	return o, err
}

// htbClass is an HTB class. Rates are in byte/s, bursts in ticks of the packet
// scheduler, as the kernel keeps them.
type htbClass struct {
	rate, ceil    uint64
	burst, cburst uint32
	prio, quantum uint32
	inner         bool // has classes below: HTB ignores its prio and quantum
}

// tick is the packet scheduler's unit of time in nanoseconds (PSCHED_SHIFT; in
// /proc/net/psched since 2.6.31, never changed).
const tick = 64

// ticks is the time that so many bytes take at a rate in byte/s.
func ticks(bytes, rate uint64) uint32 {
	return uint32(min(float64(bytes)*1e9/float64(rate)/tick, math.MaxUint32))
}

func (o htbClass) encode() *nl.RtAttr {
	p := nl.TcHtbCopt{Buffer: o.burst, Cbuffer: o.cburst, Quantum: o.quantum, Prio: o.prio}
	p.Rate = nl.TcRateSpec{Linklayer: linklayerEther, Rate: rate32(o.rate)}
	p.Ceil = nl.TcRateSpec{Linklayer: linklayerEther, Rate: rate32(o.ceil)}
	a := container(0)
	a.AddRtAttr(nl.TCA_HTB_PARMS, p.Serialize())
	if o.rate > math.MaxUint32 {
		a.AddRtAttr(nl.TCA_HTB_RATE64, nl.Uint64Attr(o.rate))
	}
	if o.ceil > math.MaxUint32 {
		a.AddRtAttr(nl.TCA_HTB_CEIL64, nl.Uint64Attr(o.ceil))
	}
	return a
}

func rate32(r uint64) uint32 { return uint32(min(r, math.MaxUint32)) }

func (o htbClass) words() []word {
	w := []word{
		{"rate", rateString(o.rate)}, {"ceil", rateString(o.ceil)},
		{"burst", tickString(o.burst, o.rate)}, {"cburst", tickString(o.cburst, o.ceil)},
	}
	if o.inner {
		return w
	}
	return append(w, word{"prio", fmt.Sprint(o.prio)}, word{"quantum", fmt.Sprint(o.quantum)})
}

// tickString keeps the ticks beside the bytes where those do not give them back.
func tickString(t uint32, rate uint64) string {
	bytes := uint64(math.Round(float64(t) * tick * float64(rate) / 1e9))
	if ticks(bytes, rate) == t {
		return fmt.Sprintf("%db", bytes)
	}
	return fmt.Sprintf("%db (%d ticks)", bytes, t)
}

// inPlace: HTB takes another prio for a leaf, but while packets wait in it, it
// stays where it was; under load that is for good. So such a leaf gets a new queue.
func (o htbClass) inPlace(other optionSet) bool {
	have, ok := other.(htbClass)
	return o.inner || ok && have.prio == o.prio
}

func decodeHTBClass(b []byte) (optionSet, error) {
	var o htbClass
	var err = tooShort("htb class", b)
	if e := eachAttr(b, func(typ uint16, v []byte) {
		switch {
		case typ == nl.TCA_HTB_PARMS && len(v) >= nl.SizeofTcHtbCopt:
			p := nl.DeserializeTcHtbCopt(v)
			o.rate, o.ceil = max(o.rate, uint64(p.Rate.Rate)), max(o.ceil, uint64(p.Ceil.Rate))
			o.burst, o.cburst, o.prio, o.quantum = p.Buffer, p.Cbuffer, p.Prio, p.Quantum
			o.inner, err = p.Level > 0, nil
		case typ == nl.TCA_HTB_RATE64 && len(v) >= 8:
			o.rate = native.Uint64(v)
		case typ == nl.TCA_HTB_CEIL64 && len(v) >= 8:
			o.ceil = native.Uint64(v)
		}
	}); e != nil {
		return nil, e
	}
	return o, err
}
